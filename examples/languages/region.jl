# Where do the slots of this loop go?
using Printf

const library = "libtopdown.so.0"

function last_error()
    text = zeros(UInt8, 1000)
    @ccall library.td_last_error(text::Ptr{UInt8}, length(text)::Csize_t)::Cint
    return GC.@preserve text unsafe_string(pointer(text))
end

function region(count)
    sum = 0
    for i in 1:count
        sum += i * sum + 1
    end
    return sum
end

function main()
    td = Ref{Ptr{Cvoid}}(C_NULL)
    if @ccall(library.td_open(td::Ref{Ptr{Cvoid}}, C_NULL::Ptr{Cvoid})::Cint) != 0 # no counters here: say why, and go on with made-up ones
        println("SIMULATED: ", last_error())
        simulated = zeros(UInt32, 24) # struct td_options
        simulated[1] = sizeof(simulated)
        simulated[2] = 8 # flags = TD_FLAG_SIMULATE
        @ccall(library.td_open(td::Ref{Ptr{Cvoid}}, simulated::Ptr{UInt32})::Cint) == 0 || exit(1)
    end
    region(1) # (compiled before it is measured)
    before, after = zeros(UInt64, 32), zeros(UInt64, 32) # struct td_sample
    shares = zeros(Float64, 10) # struct td_l1
    @ccall library.td_read(td[]::Ptr{Cvoid}, before::Ptr{UInt64})::Cint
    sum = region(10000000)
    @ccall library.td_read(td[]::Ptr{Cvoid}, after::Ptr{UInt64})::Cint
    if @ccall(library.td_decode_l1(before::Ptr{UInt64}, after::Ptr{UInt64}, shares::Ptr{Float64})::Cint) != 0
        println("not measured: ", last_error())
    else
        percent = 100 .* shares[3:7]
        @printf("retiring %.1f %%, bad speculation %.1f %%, frontend bound %.1f %%, backend bound %.1f %%, each within %.1f points (%d)\n",
            percent..., sum)
    end
    @ccall library.td_close(td[]::Ptr{Cvoid})::Cvoid
end

main()
