#!/usr/bin/env bash
# Real programs with all of their functions patched (--functions '*'): same output, errors and exit status as without, and each of
# some functions was executed. Counters are simulated. The last line counts.
# needs: nothing
. "$(dirname "$0")/../preload/lib/programs.sh"
if [ "$(uname -m)" != x86_64 ]; then
  echo "skip: functions are patched on x86-64"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi

# The same with and without; the report has so many functions that were executed, each of them so often as it ended.
same() { # same FUNCTIONS PATTERNS COMMAND...
  local least=$1 patterns=$2 without with
  shift 2
  "$@" < /dev/null > "$scratch/without.out" 2> "$scratch/without.err"
  without=$?
  "$topdown" run -o "$scratch/report.csv" --functions "$patterns" -- "$@" < /dev/null > "$scratch/with.out" 2> "$scratch/with.err"
  with=$?
  [ $with = $without ] || { echo "exit status $with, not $without"; cat "$scratch/with.err"; return 1; }
  # (which functions are not measured is said there)
  grep -v '^topdown: --functions[ :]' "$scratch/with.err" > "$scratch/with.other"
  cmp "$scratch/without.out" "$scratch/with.out" && diff "$scratch/without.err" "$scratch/with.other" || return
  awk -F, -v least="$least" '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $1 != "" && $1 !~ /^"/ && $2 == "" { found += $at["executions"] > 0 }
    END { if (found < least) { print "only " found + 0 " functions of " least; exit 1 } }' "$scratch/report.csv"
}

python=$(for one in /usr/bin/python3 python3; do command -v $one; done | head -n 1)
python_computes() {
  cat > "$scratch/program.py" << 'P'
import collections, hashlib, itertools, json, re, signal, subprocess, sys, threading
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def deep(n): return 0 if n == 0 else 1 + deep(n - 1)
def handler(number, frame): raise InterruptedError(number)
sys.setrecursionlimit(3000)
print(fib(15), deep(2500), json.dumps({"a": [1, 2.5, {"b": None}] * 3}))
print(re.sub("(a|b)+", "x", "abcabab" * 50)[:40], hashlib.sha256(b"x" * 100000).hexdigest())
try: {}["x"]
except KeyError as error: print("no", error)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    while True: pass
except InterruptedError as error: print("interrupted", error)
threads = [threading.Thread(target=fib, args=(10,)) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(subprocess.run(["sh", "-c", "echo child; exit 5"], capture_output=True))
print(len(list(itertools.permutations(range(6)))), sorted(collections.Counter(i * i % 7 for i in range(100)).items()))
sys.exit(9)
P
  # (the program itself has them, or a library)
  same 300 '*,libpython3*:*' "$python" "$scratch/program.py"
}

perl_computes() {
  cat > "$scratch/program.pl" << 'P'
use strict;
my %lengths;
$lengths{$_ % 37} .= chr(65 + $_ % 26) for 1 .. 2000;
my $text = join ",", map { "$_=" . length $lengths{$_} } sort { $a <=> $b } keys %lengths;
$text =~ s/(\d+)=(\d+)/$2-$1/g;
print "$text\n";
eval { die { code => 3 } };
print "$@->{code}\n";
sub factorial { my $n = shift; $n < 2 ? 1 : $n * factorial($n - 1) }
print factorial(20), " ", sprintf("%.3f", sqrt 2), "\n";
local $SIG{ALRM} = sub { die "alarm\n" };
eval { alarm 1; 1 while 1; };
print $@;
my $child = fork // die;
exit 3 unless $child;
waitpid $child, 0;
print $? >> 8, "\n";
exit 4;
P
  same 100 '*,libperl*:*' perl "$scratch/program.pl"
}

bash_computes() {
  same 100 '*' bash -c 'for i in {1..300}; do y[$i]=$((i * i)); done; echo "${y[@]: -3}"
    f() { local a=$1; [ "$a" -gt 0 ] && f $((a - 1)); echo -n "$a "; }; f 20; trap "echo end" EXIT
    (echo within; exit 2); echo $?; cat <<< "here" | tr a-z A-Z; wait; exit 6'
}

gcc_compiles() {
  cat > "$scratch/program.c" << 'P'
#include <stdio.h>
struct point { double x, y; };
static double area(const struct point *points, int count)
{
    double sum = 0;
    for (int k = 0; k < count; k++)
        sum += points[k].x * points[(k + 1) % count].y - points[(k + 1) % count].x * points[k].y;
    return sum / 2;
}
int main(int argc, char **argv)
{
    struct point points[] = {{0, 0}, {argc, 0}, {argc, argc}, {0, argc}};
    switch (argc) { case 1: puts("one"); break; case 2: puts(argv[1]); break; default: puts("more"); }
    return printf("%g\n", area(points, 4)) != 2;
}
P
  same 1 '*' gcc -O2 -Wall -c "$scratch/program.c" -o /dev/stdout
}

cxx_throws() {
  cat > "$scratch/program.cpp" << 'P'
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
struct base { virtual int value(int n) const { return n; } virtual ~base() {} };
struct derived : base { int value(int n) const override { if (n % 7 == 3) throw std::out_of_range("seven"); return n * 2; } };
static int deeper(int n) { std::string kept(40, 'x'); if (n == 0) throw std::runtime_error("deep"); return deeper(n - 1) + int(kept.size()); }
static int choose(int n) { switch (n % 6) { case 0: return 5; case 1: return n * 3; case 2: return n ^ 9; case 3: return -n; case 4: return n + 8; default: return 1; } }
int main()
{
    std::vector<std::thread> threads;
    int caught[3] = {};
    for (int t = 0; t < 3; t++)
        threads.emplace_back([&caught, t] {
            std::unique_ptr<base> one(new derived);
            for (int k = 0; k < 1000; k++)
                try { caught[t] += choose(one->value(k)); deeper(k % 20); }
                catch (const std::runtime_error &) { caught[t]++; }
                catch (const std::exception &) { caught[t] += 2; }
        });
    for (auto &thread : threads)
        thread.join();
    std::map<std::string, int> words;
    for (int k = 0; k < 10000; k++)
        words[std::to_string(k % 1000)]++;
    std::printf("%d %zu\n", caught[0] + caught[1] + caught[2], words.size());
    return 17;
}
P
  for level in -O0 -O1 -O2 -O3 "-O2 -fcf-protection=full" "-O2 -fno-omit-frame-pointer -fno-plt" "-O2 -no-pie" \
    "-O2 -static-libgcc -static-libstdc++"; do
    # shellcheck disable=SC2086
    g++ $level -pthread "$scratch/program.cpp" -o "$scratch/program" && same 2 '*,libstdc++*:*' "$scratch/program" || return
  done
}

# Programs whose jumps are hard to see: each function has as many executions as it has, or is not measured.
c_jumps() {
  cat > "$scratch/program.c" << 'P'
#include <stdio.h>
#define OWN __attribute__((noinline, noclone))
static int count;
OWN int many(int a, int b, int c, int d, int e, int f, int g, int h)
{
    __asm__ volatile("");
    count += a + b + c + d + e + f + g + h == 36;
    return count % 5 != 0;
}
OWN int labels(void) /* its loop begins behind the frame pointer, with the arguments of a call */
{
    static void *const to[] = {&&end, &&again};
again:
    goto *to[many(1, 2, 3, 4, 5, 6, 7, 8)];
end:
    return count;
}
OWN int cases(const unsigned char *p) /* one of which is the beginning */
{
    for (;;)
        switch (*p++) {
        case 0: continue;
        case 1: return 11;
        case 2: return 23;
        case 3: return 35;
        case 4: p++; continue;
        case 5: return 77;
        case 6: return 88;
        case 7: continue;
        default: return 1;
        }
}
OWN long threaded(const unsigned char *p, long a)
{
    static void *const to[] = {&&zero, &&one, &&two, &&three};
zero: goto *to[*p++];
one: a += 3; goto *to[*p++];
two: a *= 2; goto *to[*p++];
three: return a;
}
OWN int number(void)
{
    __asm__ volatile("");
    return ++count * 3;
}
OWN int through(int (*function)(void)) { return function() + 1; } /* which returns to its third byte */
OWN int deep(int n)
{
    char kept[777];
    kept[n % 777] = (char)n;
    __asm__ volatile("" : : "r"(kept) : "memory");
    return n == 0 ? 0 : deep(n - 1) + kept[n % 777] % 3;
}
int main(void)
{
    const unsigned char one[] = {0, 0, 0, 7, 4, 9, 0, 2}, other[] = {0, 1, 2, 0, 0, 1, 2, 2, 3};
    for (int k = 0; k < 5; k++)
        printf("%d %d %ld %d\n", labels(), cases(one), threaded(other, k), through(number));
    return deep(300) > 0;
}
P
  for options in -O0 -O1 -O2 -Os "-Os -fno-omit-frame-pointer" "-Os -no-pie -fno-pie" "-O1 -no-pie -fno-pie -fno-omit-frame-pointer" \
    "-Os -fcf-protection=none -mindirect-branch=thunk" "-O1 -fcf-protection=none -mindirect-branch=thunk-inline" "-O2 -fsplit-stack"; do
    # shellcheck disable=SC2086
    gcc $options "$scratch/program.c" -o "$scratch/program" && same 0 '*' "$scratch/program" || { echo "with $options"; return 1; }
    awk -F, -v options="$options" '
      NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
      $2 == "" && $1 ~ /^(labels|cases|threaded|through|number)$/ && $at["executions"] + $at["nested"] != 5 {
        print options ": " $at["executions"] + $at["nested"] " of " $1; wrong = 1 }
      END { exit wrong }' "$scratch/report.csv" || return
  done
}

topdown_lists() { same 30 '*report*,*parse*' "$topdown" list; }

program python3 "${python:-python3}" python3 python_computes
program perl perl perl perl_computes
program bash bash bash bash_computes
program "gcc's compiler" gcc gcc gcc_compiles
program "C++ programs of eight kinds" g++ g++ cxx_throws
program "C programs whose jumps are hard to see" gcc gcc c_jumps
program "a program in Rust" "$topdown" '' topdown_lists

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
