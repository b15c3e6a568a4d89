#!/usr/bin/env bash
# Some forty programs as Debian ships them, servers and job runners among them, under `topdown run` and (with counters) `topdown stat`, as an
# ordinary user: same output, errors and exit status as alone, and the whole is counted within a point, of the mix that the emulated machine
# has. Without counters they are made up (TOPDOWN_SIMULATE=1). A few of them, the same ones with each TOPDOWN_SEED; with ALL=1 or a NAME all of these, on any
# machine, and what is not there is installed. The last line counts.
# needs: nothing or counters
. "$(dirname "$0")/lib/programs.sh"
install_packages=${ALL:-}
few=6 # that are run; on the emulated machine, some rows run two

user=()
if [ "$(id -u)" = 0 ]; then
  user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  chmod 711 "$scratch"
fi
[ -z "${MACHINE:-}" ] || { before=$(cat /proc/sys/kernel/perf_event_paranoid); echo 2 > /proc/sys/kernel/perf_event_paranoid; }
[ -z "${MACHINE:-}" ] || trap 'echo "$before" > /proc/sys/kernel/perf_event_paranoid; rm -rf "$scratch"' EXIT

# once WAY [WORD...] : the script, in which $UNDER stands for these words, in an empty directory
once() {
  local way=$1 code=0 report
  shift
  rm -rf "$scratch/here"
  mkdir "$scratch/here"
  [ ${#user[@]} = 0 ] || chown 65534:65534 "$scratch/here"
  ( cd "$scratch/here" && printf '%s\n' "$script" > script && exec env HOME="$PWD" TMPDIR="$PWD" UNDER="$*" \
      ${user[@]+"${user[@]}"} timeout -k 5 200 bash script < /dev/null ) > "$scratch/$way.out" 2> "$scratch/$way.err" || code=$?
  sed -i -E 's/^(script: line [0-9]+:) +[0-9]+ /\1 /' "$scratch/$way.err" # what bash says of a process that a signal ended
  echo "exit status $code" >> "$scratch/$way.out"
  rm -f "$scratch/$way.csv"
  report=$(find "$scratch/here" -maxdepth 1 -name 'report.*.csv' -printf '%T@ %p\n' | sort -n | tail -n 1) # (the last, of several)
  [ -z "$report" ] || mv "${report#* }" "$scratch/$way.csv"
}

as_alone() { # as_alone WAY : the same output
  diff "$scratch/alone.out" "$scratch/$1.out" && diff "$scratch/alone.err" "$scratch/$1.err" || { echo "so much for $1"; return 1; }
}

# The whole: counted all of the time, to a point, and as the emulated machine divides the slots of whoever does not say otherwise (set_phase in
# qemu-intel-pmu.patch). Made-up figures add up.
whole() { # whole WAY
  [ -e "$scratch/$1.csv" ] || { echo "$1: no report"; return 1; }
  awk -F, -v way="$1" -v real="${MACHINE:-}" '
    function off(name, truth,   by) {
      by = $at[name] - truth
      if (by > $at["error_1"] || by < -$at["error_1"]) { print way ": " name " is " $at[name] ", not " truth; bad = 1 }
    }
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $1 == "" && $2 == "" && $3 == "" && !found {
      found = 1
      sum = $at["retiring"] + $at["bad_speculation"] + $at["frontend_bound"] + $at["backend_bound"]
      printf "%s: %.0f slots, within %g\n", way, $at["slots"], $at["error_1"]
      if (!($at["slots"] > 100000) || sum < 1 - 1e-6 || sum > 1 + 1e-6) { print way ": " sum " of " $at["slots"] " slots"; bad = 1 }
      if (real == "") next
      off("retiring", 26 / 64); off("bad_speculation", 6 / 64); off("frontend_bound", 13 / 64); off("backend_bound", 19 / 64)
      # (beside threads by the registers no counter is left for what corrects frontend bound: then that is in the bound, and not in retiring)
      exact = $at["retiring"] - 26 / 64 < 0.01 && 26 / 64 - $at["retiring"] < 0.01
      if (!($at["error_1"] <= 0.01 || way == "run" && exact) || $at["running"] < 0.999) { print way ": within " $at["error_1"] ", running " $at["running"]; bad = 1 }
    }
    END { if (!found) print way ": no whole"; exit bad || !found }' "$scratch/$1.csv" || { cut -d, -f1-16 "$scratch/$1.csv"; return 1; }
}

slots_of() { awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } $1 == "" && $2 == "" && $3 == "" { print $at["slots"]; exit }' "$scratch/$1.csv"; }

same() {
  once alone
  echo "alone: $(tail -n 1 "$scratch/alone.out")"
  once run "$topdown" run -o "$scratch/here/report.%p.csv" --
  as_alone run || return
  [ -n "${MACHINE:-}" ] || { [[ " $unseen " == *" $name "* ]] || whole run; return; }
  whole run || return
  once stat "$topdown" stat --wait -o "$scratch/here/report.%p.csv" --
  as_alone stat && whole stat || return
  # (the library's start, and what it does in each process and thread, is in the first)
  awk -v run="$(slots_of run)" -v stat="$(slots_of stat)" 'BEGIN { exit run < 0.9 * stat }' || { echo "slots are missing"; return 1; }
}

unseen='busybox go cgo' # without counters: static, or ends by a raw exit_group
names=() chosen=("$@")
declare -A command_of package_of script_of
one() { # one NAME COMMAND PACKAGE : its script is standard input
  names+=("$1")
  command_of[$1]=$2 package_of[$1]=$3 script_of[$1]=$(cat)
}

one pipeline awk mawk << 'S'
$UNDER bash -c 'seq 20000 | awk "{ s += \$1 } END { print s }"; seq 9000 | sort -k1.3 | sed s/5/x/ | tail -n 3 | tr x y; ls /nowhere; exit 3'
S
one perl perl perl << 'S'
$UNDER perl -e 'for (1 .. 3) { if (!fork) { my %h; $h{$_ % 97} .= $_ for 1 .. 20000; exit length $h{3} } }
  my @s; while (wait != -1) { push @s, $? } print "@s\n"; $SIG{ALRM} = sub { print "alarm\n"; kill KILL => $$ }; alarm 1; sleep 9 while 1'
S
one python3 python3 python3 << 'S'
cat > p.py << 'P'
import concurrent.futures, hashlib, signal, subprocess, sys
def f(n): return hashlib.sha256(b"x" * n * 1000).hexdigest()[:8]
if __name__ == "__main__":
    with concurrent.futures.ThreadPoolExecutor(4) as e: print(list(e.map(f, range(9))))
    with concurrent.futures.ProcessPoolExecutor(2) as e: print(list(e.map(f, range(9))))
    print(subprocess.run(["sh", "-c", "kill -9 $$"]).returncode, signal.getsignal(signal.SIGCHLD))
    raise SystemExit("ends")
P
$UNDER /usr/bin/python3 p.py
S
one ruby ruby ruby << 'S'
$UNDER ruby -e 'a = 4.times.map { |n| Thread.new { (1..20000).sum { |k| k % (n + 2) } } }.map(&:value); p a; pid = fork { exit! 5 }; Process.wait pid; p $?.exitstatus; p `echo child`; abort "no"'
S
one lua lua5.4 lua5.4 << 'S'
$UNDER lua5.4 -e 'local s = 0 for i = 1, 300000 do s = s + i % 7 end print(s, os.execute("exit 4")) error("x")'
S
one php php php-cli << 'S'
$UNDER php -r '$a = []; for ($i = 0; $i < 100000; $i++) $a[$i % 100] = ($a[$i % 100] ?? 0) + $i; echo array_sum($a), "\n"; echo shell_exec("echo child"); exit(6);'
S
one node node nodejs << 'S'
$UNDER node -e 'const c = require("crypto"), p = require("child_process"); console.log(p.execSync("echo child").toString().trim());
  c.pbkdf2("a", "b", 2000, 16, "sha512", (e, k) => { console.log(k.toString("hex")); process.exit(9) })'
S
one java javac default-jdk-headless << 'S'
cat > P.java << 'P'
public class P { public static void main(String[] a) throws Exception {
  var t = new Thread[4]; long[] s = new long[4];
  for (int n = 0; n < 4; n++) { int k = n; t[n] = new Thread(() -> { for (int i = 0; i < 100000; i++) s[k] += i % (k + 2); }); t[n].start(); }
  for (var one : t) one.join();
  System.out.println(s[0] + s[1] + s[2] + s[3]); System.exit(7); } }
P
javac P.java && $UNDER java -Xshare:auto P
S
one tcl tclsh tcl << 'S'
echo 'set s 0; for {set i 0} {$i < 50000} {incr i} { incr s [expr {$i % 5}] }; puts $s; puts [exec echo child]; exit 3' > p.tcl; $UNDER tclsh p.tcl
S
one gcc gcc gcc << 'S'
printf '#include <stdio.h>\nint main(void) { for (int k = 0; k < 9; k++) printf("%%d\\n", k * k); return 3; }\n' > p.c
$UNDER gcc -O2 -flto p.c -o p && ./p
S
one cc1-fails gcc gcc << 'S'
echo 'int main(void) { return x; }' > p.c; $UNDER gcc -c p.c
S
one make make make << 'S'
for n in 1 2 3 4; do echo "int f$n(int x) { return x * $n; }" > f$n.c; done
printf 'all: f1.o f2.o f3.o f4.o\n\t@echo linked; exit 3\n%%.o: %%.c\n\t@gcc -O1 -c $< -o $@\n' > Makefile
$UNDER make -j4 2>&1 | sort
S
one ninja ninja ninja-build << 'S'
printf 'rule sum\n  command = awk "BEGIN { while (n < 100000) n++; print n }" > $out\nbuild a: sum\nbuild b: sum\nbuild c: sum\n' > build.ninja
$UNDER ninja -j3 --quiet; cat a b c
S
one parallel parallel parallel << 'S'
mkdir -p .parallel; touch .parallel/will-cite; $UNDER parallel -j3 -k 'seq {} | tail -n 1; exit $(( {} % 2 ))' ::: 1 2 3 4 5
S
one xargs xargs findutils << 'S'
seq 60 | $UNDER xargs -P4 -n 10 sh -c 'for n; do t=$((t + n)); done; echo $t > s$1' - ; cat s*
seq 4 | $UNDER xargs -n 1 sh -c 'kill -TERM $$'
S
one git git git << 'S'
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=a \
  GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=a@b GIT_CONFIG_KEY_2=init.defaultBranch GIT_CONFIG_VALUE_2=m
git init -q r && cd r
for n in 1 2 3 4 5; do seq $n 3000 > file$n; git add . && git commit -qm "$n"; done
$UNDER git gc -q --aggressive; git count-objects; git log --format=%h; git fsck
S
one git-clones git git << 'S'
git init -q a; cd a; seq 999 > f; git add f; git -c user.name=a -c user.email=a@b commit -qm a; cd ..
$UNDER git clone -q file://$PWD/a b; cmp a/f b/f && echo same
S
one tar tar tar << 'S'
mkdir d; for n in 1 2 3; do seq $n 9000 > d/$n; done; $UNDER tar -czf a.tgz --sort=name d; tar -tzf a.tgz; $UNDER tar -xzOf a.tgz d/2 | cksum; $UNDER tar -xf nowhere
S
one xz xz xz-utils << 'S'
seq 60000 > f; $UNDER xz -T2 --block-size=100000 -kc f | xz -dc | cmp - f && echo same; $UNDER xz -t f
S
one zstd zstd zstd << 'S'
seq 90000 > f; $UNDER zstd -q -T2 -kc f | zstd -dc | cmp - f && echo same; $UNDER zstd -t -q f
S
one pigz pigz pigz << 'S'
seq 90000 > f; $UNDER pigz -p 3 -kc f | gzip -dc | cmp - f && echo same
S
one sqlite3 sqlite3 sqlite3 << 'S'
$UNDER sqlite3 d.db 'create table t (a integer primary key, b); with recursive c(n) as (select 1 union all select n + 1 from c where n < 20000) insert into t select n, n % 7 from c;
  create index i on t (b); select b, count(*) from t group by b; select broken'
S
one redis redis-server redis-server << 'S'
$UNDER redis-server --port 0 --unixsocket $PWD/s --save '' --appendonly no --daemonize no --loglevel warning --dir . > log 2>&1 &
until redis-cli -s s ping > /dev/null 2>&1; do kill -0 $! || exit 1; done
redis-cli -s s set a b; seq 300 | sed 's/.*/incrby n &/' | redis-cli -s s | tail -n 1
redis-cli -s s bgsave > /dev/null; redis-cli -s s get n
kill -TERM $!; wait $!; echo "ended by $?"
S
one memcached memcached memcached << 'S'
$UNDER memcached -u nobody -s $PWD/s -t 4 &
until [ -S s ]; do kill -0 $! || exit 1; done
perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new(Peer => "s") or die; for (1 .. 300) { print $s "set k$_ 0 0 3\r\nabc\r\n"; $n += <$s> =~ /STORED/ } print "$n\n"'
kill -INT $!; wait $!; echo "ended by $?"
S
one nginx nginx nginx-light << 'S'
printf 'daemon off; worker_processes 2; pid pid; error_log /dev/null; events { } http { access_log off; client_body_temp_path t1; proxy_temp_path t2;
  fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5; server { listen unix:s; location / { return 200 "hello\\n"; } } }' > nginx.conf
$UNDER nginx -p . -c nginx.conf -e /dev/null &
until [ -S s ] && [ -s pid ]; do kill -0 $! || exit 1; done
for n in 1 2 3 4 5; do curl -s --unix-socket s http://a/; done
kill -HUP $(cat pid); curl -s --unix-socket s http://a/; kill -QUIT $(cat pid); wait $!; echo "ended by $?"
S
one postgres /usr/lib/postgresql/15/bin/postgres postgresql << 'S'
b=/usr/lib/postgresql/15/bin
$b/initdb -D d -A trust -U u --no-sync > /dev/null || exit 1
$UNDER $b/postgres -D d -k $PWD -c listen_addresses= -c fsync=off > log 2>&1 &
until psql -h $PWD -U u -c '' postgres > /dev/null 2>&1; do kill -0 $! || exit 1; done
psql -h $PWD -U u -Atc 'create table t as select n, n % 7 as m from generate_series(1, 20000) n; select m, count(*) from t group by m order by m' postgres
kill -INT $(head -n 1 d/postmaster.pid); wait $!; echo "ended by $?"
S
one sshd /usr/sbin/sshd openssh-server << 'S'
ssh-keygen -q -t ed25519 -N '' -f k; cp k.pub authorized; chmod 700 .; chmod 600 authorized k
printf 'HostKey %s/k\nAuthorizedKeysFile %s/authorized\nStrictModes no\nUsePAM no\nPidFile none\nLogLevel QUIET\n' $PWD $PWD > conf
ssh-keygen -lf k.pub > /dev/null; echo x $(cat k.pub) > known
getent passwd $(id -u) | cut -d : -f 7 | grep -q nologin && command=true
timeout 30 ssh -F none -i k -o UserKnownHostsFile=known -o HostKeyAlias=x -o BatchMode=yes -o LogLevel=ERROR -o "ProxyCommand=$UNDER /usr/sbin/sshd -i -f $PWD/conf" x 'echo in; exit 5' 2>&1 | cat
echo "ended by ${PIPESTATUS[0]}"
S
one ssh-agent ssh-agent openssh-client << 'S'
ssh-keygen -q -t ed25519 -N '' -C c -f k; ssh-keygen -lf k.pub > /dev/null; cp "$(command -v ssh-agent)" a # (without its setgid bit)
$UNDER ./a sh -c 'ssh-add -q k; ssh-add -l | cut -d " " -f 1,3,4; exit 4'
S
one openssl openssl openssl << 'S'
seq 50000 > f; $UNDER openssl dgst -sha256 f; $UNDER openssl genrsa 1024 2> /dev/null | head -n 1; $UNDER openssl pkey -in nowhere 2> /dev/null
S
one busybox busybox busybox-static << 'S'
$UNDER busybox sh -c 'busybox seq 20000 | busybox awk "{ s += \$1 } END { print s }"; exit 8' 2>&1 | grep -v '^topdown: '
echo ${PIPESTATUS[0]}
S
one tmux tmux tmux << 'S'
$UNDER tmux -S $PWD/s -f /dev/null -D start-server &
until tmux -S s new-session -d 'seq 5000 | tail -n 1 > out; tmux -S s wait-for -S over; sleep 9' 2> /dev/null; do kill -0 $! 2> /dev/null || { echo "no terminals here"; exit 1; }; done
tmux -S s wait-for over; cat out; tmux -S s kill-server; wait $!; echo "ended by $?"
S
one gdb gdb gdb << 'S'
echo 'int g; int main(void) { for (int k = 0; k < 1000; k++) g += k; return 3; }' > p.c; gcc -g p.c -o p
$UNDER gdb -nx -batch -ex 'break main' -ex 'run > /dev/null' -ex 'finish' -ex 'continue' ./p 2>&1 | grep -c 'exited with code 03'
S
one strace strace strace << 'S'
$UNDER strace -f -qq -e trace=chdir -e signal=none -o o sh -c 'cd /; (cd /usr); exit 4'; echo $?; cut -d ' ' -f 2- o | sed 's/^ *//'
S
one valgrind valgrind valgrind << 'S'
echo 'int main(void) { return 3; }' > p.c; gcc p.c -o p; $UNDER valgrind -q --error-exitcode=9 ./p
S
one go go golang-go << 'S'
printf 'package main\nimport ("fmt"; "os"; "sync")\nfunc main() { var w sync.WaitGroup; s := make([]int, 4)\nfor n := range s { w.Add(1); go func(n int) { for k := 0; k < 1000000; k++ { s[n] += k %% (n + 2) }; w.Done() }(n) }
w.Wait(); fmt.Println(s); os.Exit(5) }\n' > p.go
GOCACHE=$PWD/c go build -o p p.go && $UNDER ./p 2>&1 | grep -v '^topdown: '
echo ${PIPESTATUS[0]}
S
one cgo go golang-go << 'S'
printf 'package main\n// #include <stdlib.h>\nimport "C"\nimport ("fmt"; "os")\nfunc main() { s := 0\nfor k := 0; k < 100000; k++ { s += int(C.abs(C.int(-k))) }; fmt.Println(s); os.Exit(5) }\n' > p.go
GOCACHE=$PWD/c go build -o p p.go && $UNDER ./p
S
one jq jq jq << 'S'
seq 3000 | $UNDER jq -s 'map(. * 2) | add'; echo '{' | $UNDER jq .
S
one man man man-db << 'S'
printf '.TH A 1\n.SH NAME\na \\- b\n' > a.1; $UNDER man -l a.1 < /dev/null | head -n 3
S
one file file file << 'S'
seq 99 > f; $UNDER file f /bin/true nowhere
S
one run-parts run-parts debianutils << 'S'
mkdir d; for n in a b c; do printf '#!/bin/sh\necho %s; seq 3000 | tail -n 1\n[ %s != b ]\n' $n $n > d/$n; chmod +x d/$n; done; $UNDER run-parts --report d
S
one script script bsdutils << 'S'
$UNDER script -qec 'stty size; tty > /dev/null && echo terminal; exit 6' /dev/null
S
one timeout timeout coreutils << 'S'
$UNDER timeout 0.3 sh -c 'while :; do :; done'; echo $?; $UNDER timeout -s KILL 0.3 sh -c 'while :; do :; done'; echo $?; $UNDER nohup nice setsid -w env -i sh -c 'exit 9'
S
one flock flock util-linux << 'S'
for n in 1 2 3; do $UNDER flock l sh -c 'n=$(cat n 2> /dev/null); seq 2000 > /dev/null; echo $((n + 1)) > n' & done; wait; cat n
S
one bwrap bwrap bubblewrap << 'S'
$UNDER bwrap --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --tmpfs /tmp --proc /proc \
  sh -c 'seq 20000 | tail -n 1; ls /tmp; exit 4'; echo $?
$UNDER bwrap --ro-bind / / --tmpfs /tmp --dev /dev sh -c 'seq 20000 | awk "{ s += \$1 } END { print s }"; exit 5'; echo $?
S
one unshare unshare util-linux << 'S'
$UNDER unshare -r -m -p -f sh -c 'echo $$; id -u; seq 20000 | tail -n 1; exit 5'; echo $?
S
one bc bc bc << 'S'
echo 'scale=200; 4*a(1); 1/0' | $UNDER bc -l
S
one m4 m4 m4 << 'S'
printf 'define(f, [ifelse($1, 0, 0, [f(decr($1))])])f(99) syscmd([exit 3])sysval\n' > a; { echo 'changequote([, ])'; cat a; } | $UNDER m4
S
one groff groff groff-base << 'S'
for n in $(seq 200); do printf '.PP\nA paragraph of a text.\n'; done | $UNDER groff -ms -Tutf8 | cksum
S

if [ -n "${MACHINE:-}" ] && [ ${#chosen[@]} = 0 ] && [ -z "${ALL:-}" ]; then
  few=2
  case $MACHINE in spr-* | adl-* | lnl-*) ;; *) echo "runs on spr, adl and lnl, or with ALL=1"; exit 77;; esac
fi
if [ ${#chosen[@]} = 0 ]; then
  chosen=("${names[@]}")
  if [ -z "${ALL:-}" ]; then
    # (each row begins elsewhere)
    row=$(cksum <<< "${MACHINE:-}")
    chosen=()
    for ((k = 0; k < few; k++)); do chosen+=("${names[(${TOPDOWN_SEED:-1} * few + ${row% *} + k) % ${#names[@]}]}"); done
  fi
fi
for name in "${chosen[@]}"; do
  [ -n "${script_of[$name]:-}" ] || { echo "many-programs: no program is called $name: ${names[*]}" >&2; exit 2; }
  script=${script_of[$name]}
  program "$name" "${command_of[$name]}" "${package_of[$name]}" same
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
