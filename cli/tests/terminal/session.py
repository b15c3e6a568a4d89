"""session.py [WORD...]: in a terminal of its own a shell runs commands behind these words; what the user types reaches them: Ctrl-Z and fg,
a new size of the window, a line, Ctrl-C, Ctrl-\\, and a shell that controls jobs itself. Ends with 0, or says what was missing."""
import fcntl, os, pty, re, select, struct, sys, termios, time

PROGRAM = r"""import os, signal
signal.signal(signal.SIGCONT, lambda *_: print("conti" + "nued"))
signal.signal(signal.SIGWINCH, lambda *_: print("columns", os.get_terminal_size().columns))
print("rea" + "dy", os.getpid())
print("got", input())"""

pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(PS1="$ ", PROGRAM=PROGRAM, UNDER=" ".join(sys.argv[1:]))
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
seen = ""

def until(pattern):
    global seen
    end = time.time() + 50
    while not (found := re.search(pattern, seen)):
        if not select.select([terminal], [], [], max(0, end - time.time()))[0]:
            sys.exit(f"no {pattern!r} in {seen!r}")
        seen += os.read(terminal, 65536).decode(errors="replace")
    seen = seen[found.end():]
    return found

def types(text):
    os.write(terminal, text.encode())

def ends(status):
    until(r"\$ ")
    types("echo status $?\n")
    until(rf"status {status}\r")

def becomes(state, process):
    while open(f"/proc/{process}/stat").read().rsplit(")", 1)[1].split()[0] != state:
        time.sleep(0.01)  # (nobody tells)

until(r"\$ ")
types('$UNDER python3 -uc "$PROGRAM"\n')
process = until(r"ready (\d+)").group(1)
becomes("S", process)  # (a signal just before it reads would be handled after that)
types("\x1a")
until("Stopped")
becomes("T", process)
until(r"\$ ")
types("fg\n")
until("continued")
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 77, 0, 0))
until("columns 77")
types("hello\n")
until("got hello")
ends(0)
for key, status in ("\x03", 130), ("\x1c", 131):
    types("$UNDER sh -c 'echo rea\"\"dy; exec sleep 60'\n")
    until("ready")
    types(key)
    ends(status)
types("$UNDER bash --norc --noprofile -i\n")
until(r"\$ ")
types("(exit 3)\n")
ends(3)
until(r"\$ ")
types("exit 7\n")
until("exit\r")
ends(7)
