/* topdown.hpp: topdown.h and topdown_region.h for C++17 and later. Handles close themselves, and each call that can fail is there twice:
 * one throws topdown::error, one has a std::error_code as its last parameter and throws nothing. (With -fno-exceptions only the latter.) topdown::region is topdown_region.h's.
 *
 *     topdown::counter counter;
 *     auto before = counter.read();
 *     work();
 *     auto shares = topdown::level1(before, counter.read());   // shares.retiring, ..., shares.error
 *
 * What the functions do, their threads and codes: topdown.h. This header adds no cost to a reading. Link with -ltopdown. */
#ifndef TOPDOWN_HPP
#define TOPDOWN_HPP

#include "topdown.h"
#include "topdown_region.h"
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#define TOPDOWN_EXCEPTIONS 1
#include <stdexcept>
#else
#define TOPDOWN_EXCEPTIONS 0
#endif

namespace topdown {

/* The category of codes that the library returns: -errno, or TD_E*. Those of errno compare equal to std::errc. */
inline const std::error_category &category() noexcept
{
    struct topdown_category : std::error_category {
        const char *name() const noexcept override { return "topdown"; }
        std::string message(int code) const override { return td_strerror(code); }
        std::error_condition default_error_condition(int code) const noexcept override
        {
            return code < 0 && code > -4096 ? std::error_condition(-code, std::generic_category())
                                            : std::error_condition(code, *this);
        }
    };
    static const topdown_category instance;
    return instance;
}

/* The calling thread's last failure in full: what, why, and what to do. */
inline std::string last_error()
{
    const int length = td_last_error(nullptr, 0);
    std::string text(length > 0 ? static_cast<std::size_t>(length) + 1 : 1, '\0');
    td_last_error(&text[0], text.size());
    text.pop_back();
    return text;
}

inline std::error_code code_of(int code) noexcept { return std::error_code(code, category()); }

#if TOPDOWN_EXCEPTIONS
/* Its what() begins with last_error(). */
struct error : std::system_error {
    explicit error(int code) : std::system_error(code_of(code), last_error()) {}
};

namespace detail {
inline void check(int code)
{
    if (code)
        throw error(code);
}
} // namespace detail
#endif

/* td_options whose `size` is set. */
struct options : td_options {
    options() noexcept : td_options{} { size = sizeof(td_options); }
};

/* What counts: td_open and td_close. It can be moved, and belongs to the thread that made it. */
class counter {
public:
    /* Counts nothing. */
    explicit counter(std::nullptr_t) noexcept {}
    explicit counter(int) = delete; /* no 0 for nullptr */
    counter(counter &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
    counter &operator=(counter &&other) noexcept
    {
        if (this != &other) {
            td_close(handle);
            handle = std::exchange(other.handle, nullptr);
        }
        return *this;
    }
    counter(const counter &) = delete;
    counter &operator=(const counter &) = delete;
    ~counter() { td_close(handle); }

    [[nodiscard]] static counter open(const td_options &options, std::error_code &code) noexcept
    {
        counter opened(nullptr);
        code = code_of(td_open(&opened.handle, &options));
        return opened;
    }
    [[nodiscard]] static counter open(std::error_code &code) noexcept { return open(options(), code); }

    [[nodiscard]] td_sample read(std::error_code &code) noexcept
    {
        td_sample sample;
        const int failed = td_read(handle, &sample);
        code = code_of(failed);
        return failed ? td_sample{} : sample;
    }
    void reset(std::error_code &code) noexcept { code = code_of(td_reset(handle)); }
    [[nodiscard]] td_info info(std::error_code &code) const noexcept
    {
        td_info info{};
        code = code_of(td_get_info(handle, &info));
        return info;
    }

#if TOPDOWN_EXCEPTIONS
    explicit counter(const td_options &options = topdown::options()) { detail::check(td_open(&handle, &options)); }
    [[nodiscard]] td_sample read()
    {
        td_sample sample;
        detail::check(td_read(handle, &sample));
        return sample;
    }
    void reset() { detail::check(td_reset(handle)); }
    [[nodiscard]] td_info info() const
    {
        td_info info{};
        detail::check(td_get_info(handle, &info));
        return info;
    }
#endif

    explicit operator bool() const noexcept { return handle != nullptr; }
    td_t *get() const noexcept { return handle; }

private:
    td_t *handle = nullptr;
};

[[nodiscard]] inline td_l1 level1(const td_sample &from, const td_sample &to, std::error_code &code) noexcept
{
    td_l1 shares{};
    code = code_of(td_decode_l1(&from, &to, &shares));
    return shares;
}

[[nodiscard]] inline td_l2 level2(const td_sample &from, const td_sample &to, std::error_code &code) noexcept
{
    td_l2 shares{};
    code = code_of(td_decode_l2(&from, &to, &shares));
    return shares;
}

/* All nodes that were measured, as td_decode_tree has them. Throws std::bad_alloc alone. */
[[nodiscard]] inline std::vector<td_node> tree(const td_sample &from, const td_sample &to, std::error_code &code)
{
    std::uint32_t count = 0;
    code = code_of(td_decode_tree(&from, &to, nullptr, 0, &count));
    std::vector<td_node> nodes(code ? 0 : count);
    if (!nodes.empty())
        code = code_of(td_decode_tree(&from, &to, nodes.data(), count, &count));
    return nodes;
}

#if TOPDOWN_EXCEPTIONS
[[nodiscard]] inline td_l1 level1(const td_sample &from, const td_sample &to)
{
    td_l1 shares{};
    detail::check(td_decode_l1(&from, &to, &shares));
    return shares;
}

[[nodiscard]] inline td_l2 level2(const td_sample &from, const td_sample &to)
{
    td_l2 shares{};
    detail::check(td_decode_l2(&from, &to, &shares));
    return shares;
}

[[nodiscard]] inline std::vector<td_node> tree(const td_sample &from, const td_sample &to)
{
    std::error_code code;
    std::vector<td_node> nodes = tree(from, to, code);
    detail::check(code.value());
    return nodes;
}
#endif

} // namespace topdown

#endif
