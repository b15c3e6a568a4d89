# libtopdown: `make` builds, `make demo` shows, `make check` tests; `make help` lists all.

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
FUZZ_SECONDS ?= 600
CARGO ?= cargo
CFLAGS ?= -O2 -g
CXXFLAGS ?= -O2 -g

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
OUT := target/release
LIB := $(OUT)/libtopdown.so.0
JEVENTS := $(OUT)/static/libjevents.a
RECORD := $(OUT)/static/libtopdown-record.a
# what writes man pages and completions: of a build for another machine, this one's
TOPDOWN ?= $(OUT)/topdown
MPI := $(OUT)/libtopdown-mpi.so
COMMANDS := $(addprefix $(OUT)/,listevents showevent event-rmap)
WARNINGS := -Wall -Wextra -Wpedantic -Werror
INCLUDES := -Iinclude -Ic-tests/include -Ic-tests
LINK := -L$(OUT) -Wl,--as-needed -ltopdown -Wl,-rpath,$(abspath $(OUT)) -pthread -lm
COMPILE_C = $(CC) -std=gnu11 $(CFLAGS) $(WARNINGS) $(INCLUDES)
COMPILE_CXX = $(CXX) -std=c++17 $(CXXFLAGS) $(WARNINGS) $(INCLUDES)
SOURCES := Cargo.toml Cargo.lock $(wildcard */Cargo.toml) build.rs $(wildcard .cargo/* abi/* build/* cpus/*.txt cpus/*.list cpus/deep/*) $(shell find -H src seam cli jevents lake metric-files patch preload record recorder report selftest table -name '*.rs' -o -name '*.css' -o -name '*.js')
JEVENTS_HEADERS := $(wildcard include/jevents/*.h c-tests/jevents/*.h c-tests/jevents/*/*/*.h)
HEADERS := include/topdown.h include/topdown.hpp include/topdown_inline.h include/topdown_region.h include/topdown_record.h $(wildcard c-tests/include/*.h c-tests/vm/*.h)
# Folders of c-tests by subject. What is built of them has no folders: target/c-tests/NAME.
SUBJECTS := $(filter-out $(addprefix c-tests/,arm64/ include/ jevents/ regions/ texts/ vm/),$(wildcard c-tests/*/))
TESTS := $(notdir $(basename $(wildcard $(addsuffix *.c,$(SUBJECTS)) $(addsuffix *.cpp,$(SUBJECTS)))))
JEVENTS_SOURCES := $(patsubst c-tests/%,%,$(basename $(wildcard c-tests/jevents/*.c c-tests/jevents/*.cpp)))
JEVENTS_LAYOUTS := $(addprefix target/c-tests/jevents/layout-,112 120 128 136 144 152 160)
# Those that record themselves.
RECORDED_EXAMPLES := target/examples/record target/examples/record_cpp target/examples/man/record
JEVENTS_PROGRAMS := $(addprefix target/c-tests/,$(JEVENTS_SOURCES)) $(JEVENTS_LAYOUTS) \
	$(patsubst jevents/%,target/c-tests/jevents/static/%,$(filter-out jevents/pmu_%,$(JEVENTS_SOURCES)))
PROGRAMS := $(addprefix target/c-tests/,$(TESTS)) $(patsubst %.c,target/%,$(wildcard examples/*.c examples/man/*.c benches/*.c)) $(RECORDED_EXAMPLES) $(JEVENTS_PROGRAMS)
vpath %.c $(SUBJECTS)
vpath %.cpp $(SUBJECTS)

all: $(LIB) $(JEVENTS) $(RECORD) $(COMMANDS) $(MPI) ## build libraries and commands

# Cargo is asked only if a source is newer: what was built here runs where no compiler is.
$(LIB): $(SOURCES)
	$(CARGO) build --release --locked --workspace
	@abi/link $(OUT) -Wl,--strip-debug $(LDFLAGS)

$(JEVENTS): $(LIB) abi/archive abi/jevents-symbols.txt
	@abi/archive $(OUT)/libjevents.a $@ abi/jevents-symbols.txt
	@ln -f $@ $(OUT)/libjevents.a # until cargo puts its own there again

$(RECORD): $(LIB) abi/archive abi/record-symbols.txt
	@abi/archive $(OUT)/libtopdown_recorder.a $@ abi/record-symbols.txt

$(MPI): mpi/topdown_mpi.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CPPFLAGS) $(CFLAGS) -fPIC -shared -fvisibility=hidden $(WARNINGS) $< -o $@ -Wl,-soname,$(@F) $(LDFLAGS) -ldl

$(COMMANDS): $(OUT)/%: jevents/commands/%.c $(JEVENTS) $(JEVENTS_HEADERS)
	$(CC) -std=gnu11 $(CPPFLAGS) $(CFLAGS) $(WARNINGS) -Iinclude/jevents $< -o $@ $(LDFLAGS) $(JEVENTS) -pthread -ldl -lm

target/%: %.c $(LIB) $(HEADERS)
	@mkdir -p $(@D)
	$(COMPILE_C) $< -o $@ $(LINK)

target/%: %.cpp $(LIB) $(HEADERS)
	@mkdir -p $(@D)
	$(COMPILE_CXX) $< -o $@ $(LINK)

target/c-tests/%: %.c $(LIB) $(HEADERS)
	@mkdir -p $(@D)
	$(COMPILE_C) $< -o $@ $(LINK)

target/c-tests/%: %.cpp $(LIB) $(HEADERS)
	@mkdir -p $(@D)
	$(COMPILE_CXX) $< -o $@ $(LINK)

# Programs that record themselves; callers are found by frame pointers.
SELF_RECORDED := $(RECORDED_EXAMPLES) $(addprefix target/c-tests/,$(notdir $(basename $(wildcard c-tests/record/*.c c-tests/record/*.cpp))))
$(SELF_RECORDED): LINK := -L$(OUT) -ltopdown-record $(LINK)
$(SELF_RECORDED): CFLAGS += -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer
$(SELF_RECORDED): CXXFLAGS += -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer

# Google Benchmark (Debian: libbenchmark-dev), where it is installed.
GOOGLE_BENCHMARK := $(shell $(CXX) -E -x c++ -include benchmark/benchmark.h /dev/null -o /dev/null 2> /dev/null && echo -lbenchmark)
target/c-tests/pmu_benchmark target/examples/benchmark: LINK += $(GOOGLE_BENCHMARK)
target/c-tests/pmu_benchmark target/examples/benchmark: include/topdown_benchmark.h

# Callers of libjevents see its headers alone.
target/c-tests/jevents/%: INCLUDES := -Iinclude/jevents -Ic-tests/jevents -Ic-tests/include -Ic-tests
target/c-tests/jevents/%: LINK := -L$(OUT) -ljevents -Wl,-rpath,$(abspath $(OUT)) -pthread -lm
$(JEVENTS_PROGRAMS): $(JEVENTS_HEADERS)
target/c-tests/jevents/pmu_both: INCLUDES += -Iinclude
target/c-tests/jevents/pmu_both: LINK += -ltopdown

target/examples/man/events: INCLUDES := -Iinclude/jevents
target/examples/man/events: LINK := -L$(OUT) -ljevents -Wl,-rpath,$(abspath $(OUT)) -pthread -lm

# With another struct perf_event_attr.
$(JEVENTS_LAYOUTS): INCLUDES := -Ic-tests/jevents/attr -Iinclude/jevents -Ic-tests/jevents -Ic-tests/include -Ic-tests
$(JEVENTS_LAYOUTS): target/c-tests/jevents/layout-%: c-tests/jevents/layout.c $(LIB)
	@mkdir -p $(@D)
	$(COMPILE_C) -DATTR_SIZE=$* $< -o $@ $(LINK)

# The same with the static library.
target/c-tests/jevents/static/%: c-tests/jevents/%.c $(JEVENTS) $(JEVENTS_HEADERS)
	@mkdir -p $(@D)
	$(COMPILE_C) $< -o $@ $(JEVENTS) -pthread -ldl -lm

target/c-tests/jevents/static/%: c-tests/jevents/%.cpp $(JEVENTS) $(JEVENTS_HEADERS)
	@mkdir -p $(@D)
	$(COMPILE_CXX) $< -o $@ $(JEVENTS) -pthread -ldl -lm

# Libraries that the tests of hooks measure.
target/c-tests/lib/lib%.so: c-tests/hooks/lib/%.c c-tests/hooks/lib/hooked.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -fPIC -shared -fexceptions $(WARNINGS) -Wno-psabi $< -o $@ $(if $(findstring hooked,$*),,-finstrument-functions -L$(@D) -lhooked -Wl,-rpath,'$$ORIGIN')

target/c-tests/lib/libearly.so: c-tests/preload/lib/early.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -fPIC -shared $(WARNINGS) $< -o $@

target/c-tests/lib/libplugin.so: target/c-tests/lib/libhooked.so
target/c-tests/hooks_%: LINK := -Ltarget/c-tests/lib -lhooked -Wl,-rpath,'$$ORIGIN/lib' -Wl,-z,lazy $(LINK) -rdynamic
target/c-tests/hooks_now: LINK += -Wl,-z,now
target/c-tests/hooks_own_unwinder: LINK += -static-libgcc -static-libstdc++
target/c-tests/hooks_own_unwinder: c-tests/hooks/hooks_exceptions.cpp
target/c-tests/preload_memory target/c-tests/pmu_preload_memory target/c-tests/preload_getenv: LINK += -rdynamic
target/c-tests/preload_early: LINK := -Ltarget/c-tests/lib -Wl,--no-as-needed -learly -Wl,-rpath,'$$ORIGIN/lib' $(LINK)
target/c-tests/preload_early: target/c-tests/lib/libearly.so
target/c-tests/preload_sanitized: CFLAGS += -fsanitize=thread
target/c-tests/pmu_preload_memory: c-tests/preload/preload_memory.c
target/c-tests/hooks_functions target/c-tests/hooks_cancelled: CFLAGS += -finstrument-functions
$(addprefix target/c-tests/,$(filter hooks_%,$(TESTS))): target/c-tests/lib/libplugin.so

# Programs that `topdown stat` counts; libtopdown is in none of them.
target/c-tests/lib/shapes: c-tests/command/lib/shapes.c c-tests/command/lib/shapes.h c-tests/vm/mix.h c-tests/include/sandbox.h
	@mkdir -p $(@D)
	$(COMPILE_C) $< -o $@ -pthread

target/c-tests/lib/shapes-static: c-tests/command/lib/shapes.c c-tests/command/lib/shapes.h c-tests/vm/mix.h c-tests/include/sandbox.h
	@mkdir -p $(@D)
	$(COMPILE_C) $< -o $@ -pthread -static

target/c-tests/lib/plain: c-tests/command/lib/plain.c c-tests/vm/mix.h
	@mkdir -p $(@D)
	$(COMPILE_C) $< -o $@

target/c-tests/pmu_dropped: target/c-tests/lib/plain

$(addprefix target/c-tests/pmu_,dropped killed run_outside run_regions stat storms stat_lost stat_parts stat_tasks stat_whom timeline top turns): c-tests/command/lib/shapes.h c-tests/command/lib/stat.h \
	target/c-tests/lib/shapes target/c-tests/lib/shapes-static

target/c-tests/lib/functions: c-tests/command/lib/functions.c c-tests/command/lib/functions.h c-tests/command/lib/work.h c-tests/vm/mix.h
	@mkdir -p $(@D)
	$(COMPILE_C) -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer $< -o $@ -pthread

# Programs that come and go, and what they load.
target/c-tests/lib/storms: c-tests/command/lib/storms.c $(addprefix c-tests/command/lib/,storms.h functions.h work.h) c-tests/vm/mix.h $(addprefix target/c-tests/lib/libstorm-,g.so h.so)
	@mkdir -p $(@D)
	$(COMPILE_C) -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer $< -o $@ -pthread -ldl

target/c-tests/lib/storms-stripped: target/c-tests/lib/storms
	strip -o $@ $<

target/c-tests/lib/libstorm-%.so: c-tests/command/lib/storm_library.c
	@mkdir -p $(@D)
	$(COMPILE_C) -DLETTER=$* -fPIC -shared $< -o $@

target/c-tests/pmu_record_storms: $(addprefix c-tests/command/lib/,functions.h profile.h shapes.h stat.h storms.h) $(addprefix target/c-tests/lib/,storms storms-stripped)

target/c-tests/lib/activations: c-tests/command/lib/activations.c c-tests/command/lib/activations.h c-tests/command/lib/functions.h c-tests/vm/mix.h
	@mkdir -p $(@D)
	$(COMPILE_C) -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer $< -o $@

target/c-tests/pmu_record_calls: $(addprefix c-tests/command/lib/,activations.h functions.h profile.h shapes.h stat.h) $(addprefix target/c-tests/lib/,activations functions)

target/c-tests/lib/phases: $(addprefix c-tests/command/lib/,phases.c phases.h functions.h work.h) c-tests/vm/mix.h
	@mkdir -p $(@D)
	$(COMPILE_C) -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer $< -o $@ -pthread

target/c-tests/pmu_record_phases: $(addprefix c-tests/command/lib/,phases.h functions.h profile.h shapes.h stat.h) target/c-tests/lib/phases

target/c-tests/lib/callers: c-tests/command/lib/callers.c
	@mkdir -p $(@D)
	$(COMPILE_C) -fomit-frame-pointer $< -o $@

target/c-tests/pmu_record_dwarf: c-tests/command/lib/shapes.h c-tests/command/lib/stat.h target/c-tests/lib/callers
target/c-tests/lib/lines: c-tests/command/lib/lines.c
	@mkdir -p $(@D)
	$(COMPILE_C) $< -o $@

target/c-tests/pmu_record_lines: c-tests/command/lib/functions.h c-tests/command/lib/profile.h c-tests/command/lib/shapes.h c-tests/command/lib/stat.h target/c-tests/lib/lines
target/c-tests/pmu_record_self: c-tests/command/lib/work.h
target/c-tests/pmu_record target/c-tests/pmu_record_cost target/c-tests/pmu_record_cpus target/c-tests/pmu_record_compare target/c-tests/pmu_record_self: c-tests/command/lib/functions.h c-tests/command/lib/profile.h c-tests/command/lib/shapes.h c-tests/command/lib/stat.h target/c-tests/lib/functions

target/c-tests/basic-static: c-tests/open/basic.c $(LIB) $(HEADERS)
	@mkdir -p $(@D)
	$(COMPILE_C) $< -o $@ $(OUT)/libtopdown.a -pthread -ldl -lm

programs: $(PROGRAMS) target/c-tests/basic-static ## build the tests, examples and benchmarks

benchmark-example: $(if $(GOOGLE_BENCHMARK),target/examples/benchmark) ## benchmarks with shares as counters, if Google Benchmark is there
	@$(if $(GOOGLE_BENCHMARK),$<,echo "skip benchmark-example: install Google Benchmark (Debian: apt-get install libbenchmark-dev)")

demo: target/examples/demo ## measure three regions: on real counters, else simulated
	@target/examples/demo

check: ## every test that needs no special machine
	@c-tests/check

test: ## one test: make test T=NAME (c-tests/README.md lists them), on the emulated machine where it needs one
	@c-tests/test $(T)

quick: ## the same, built in seconds after a change: each crate in parts
	@c-tests/quick $(T)

check-vm: programs ## the tests that need a PMU, on the emulated machine: the gate's kernels and CPUs, or (ALL=1) all
	@c-tests/check-vm $(if $(ALL),-a)

explore: SEED ?= $(shell date +%s)
explore: programs ## all tests, on all machines, with another seed each time (SEED=N: that one)
	@echo "seed $(SEED)"
	@status=0; ALL=1 TOPDOWN_SEED=$(SEED) c-tests/check || status=1; TOPDOWN_SEED=$(SEED) c-tests/check-vm -a || status=1; exit $$status

check-arm64: ## build for arm64, and test that on the emulated arm64 machine
	@c-tests/arm64/check

check-root: ## make demo and make check in a new root that has the packages of docs/building.md and no others, of Debian's stable or SUITE
	@c-tests/tools/bare-root $(if $(SUITE),-s $(SUITE))

fuzz: ## feed the fuzzers for FUZZ_SECONDS each (600), and keep in fuzz/corpus what reaches further
	@c-tests/tools/fuzz -m $(FUZZ_SECONDS)

bench: target/benches/bench target/benches/regions ## what readings and regions cost: here, or on the emulated machine
	@{ $< && target/benches/regions; } || { [ $$? = 77 ] && echo "so on the emulated machine:" && c-tests/vm/setup trixie && c-tests/vm/run -- "$< && target/benches/regions"; }

bench-counters: target/benches/counters ## what readings of general counters cost, on the emulated machine, of five cores
	@c-tests/vm/setup trixie && for core in spr zen4 srf skx; do c-tests/vm/run -c $$core -- $< || exit; done; benches/counters-arm64

bench-intervals: ## what an interval of topdown stat costs, and of perf stat, on the emulated machine of 2 and 8 CPUs
	@c-tests/vm/setup trixie && for cpus in 2 8; do c-tests/vm/run -s $$cpus -- benches/intervals; done

bench-load: $(LIB) ## what loading the libraries costs a program, on the emulated machine
	@c-tests/vm/setup trixie && c-tests/vm/run -s 2 -- benches/load

bench-turns: ## what it costs a program that groups of counters take turns, on the emulated machine
	@c-tests/vm/setup trixie && c-tests/vm/run -c gnr -s 2 -- benches/turns

figure: target/benches/accuracy ## draw docs/accuracy.svg: error and overhead against a region's length
	@c-tests/vm/setup trixie && c-tests/vm/run -t 900 -- $< > target/accuracy.csv
	@mv target/accuracy.csv docs && benches/draw-accuracy docs/accuracy.csv > docs/accuracy.svg

screenshot: target/c-tests/pmu_regions ## draw docs/report.png: the HTML report of a program with known mixes, in Chromium
	@c-tests/vm/setup trixie && c-tests/vm/run -s 2 -- 'cp $< /tmp/solver; $(OUT)/topdown run -o /tmp/r.html -- /tmp/solver work; cat /tmp/r.html' > target/report.html
	@c-tests/tools/html target/report.html docs/report.png

example-stat: target/c-tests/at_mix ## README's topdown stat, of a program with a known mix, on the emulated machine
	@c-tests/vm/setup trixie && c-tests/vm/run -s 2 -- 'hostname vm; PATH=$(abspath $(OUT)):$$PATH; cd /tmp; printf "#!/bin/sh\nexec $(abspath $<) 16 4 8 4 12 8 13\n" > prog; chmod +x prog; topdown stat ./prog'

example-vm: target/examples/region ## the example of docs/library.md on the emulated machine
	@c-tests/vm/setup trixie && c-tests/vm/run -c gnr -- $<

header: ## make include/topdown.h and topdown_inline.h, and c-tests/include/internals.h, from the sources; and man pages
	TOPDOWN_WRITE_HEADER=1 $(CARGO) test --locked --test header
	@$(MAKE) man

man: ## make man/*.3 from the headers' comments, examples/man/*.c and man/pages
	TOPDOWN_WRITE_MAN=1 $(CARGO) test --locked --test man

index: ## make c-tests/README.md from the tests
	@c-tests/tools/index > target/index && mv target/index c-tests/README.md

failures: ## make the tables of docs/failures.md from the code
	TOPDOWN_WRITE_FAILURES=1 $(CARGO) test --locked --lib the_document_has

cpus: ## make the table of docs/cpus.md from the code
	TOPDOWN_WRITE_CPUS=1 $(CARGO) test --locked -p topdown-cli --test list

# (a shell and sed read them)
PATHS = $(DESTDIR)$(PREFIX)$(BINDIR)$(LIBDIR)$(INCLUDEDIR)$(DATADIR)
PLAIN_PATHS = @case '$(subst ','\'',$(PATHS))' in *[!A-Za-z0-9/._+,:@%~-]*) \
	echo "DESTDIR, PREFIX and the other directories may have letters, digits and /._+,:@%~- alone" >&2; exit 1;; esac
# (paths below PREFIX are relative to it, so that `pkg-config --define-prefix` finds a tree that was moved)
BELOW_PREFIX = $(patsubst $(PREFIX)/%,$${prefix}/%,$(1))
INSTALLED := topdown.h topdown.hpp topdown_inline.h topdown_region.h topdown_record.h topdown_benchmark.h
# libjevents' headers by whose names no others are called: for programs that know PREFIX alone
JEVENTS_NAMES := jevents.h jsession.h
CONFIGURE = sed -e 's|@version@|$(VERSION)|; s|@prefix@|$(PREFIX)|; s|@libdir@|$(call BELOW_PREFIX,$(LIBDIR))|'
# functions, each of which has a page or a link to it
MANUALS = $(shell sed -n 's/^\.Nm \([A-Za-z0-9_]*\).*/\1/p' man/*.3)
SHARED = man/man1/topdown*.1 $(patsubst man/%,man/man1/%,$(wildcard man/*.1)) $(MANUALS:%=man/man3/%.3) man/man7/topdown.7 bash-completion/completions/topdown zsh/site-functions/_topdown fish/vendor_completions.d/topdown.fish

install: all ## install commands, libraries, headers, pkg-config and CMake files, schemas, licences, man pages and completions under DESTDIR and PREFIX
	$(PLAIN_PATHS)
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(LIBDIR)/cmake/topdown $(DESTDIR)$(INCLUDEDIR)/jevents $(DESTDIR)$(DATADIR)
	install -m 755 $(OUT)/topdown $(COMMANDS) $(DESTDIR)$(BINDIR)
	install -m 755 $(LIB) $(DESTDIR)$(LIBDIR)/libtopdown.so.$(VERSION)
	install -m 755 $(OUT)/libtopdown-preload.so $(DESTDIR)$(LIBDIR)/libtopdown-preload.so
	install -m 755 $(OUT)/libtopdown-record.so.0 $(DESTDIR)$(LIBDIR)/libtopdown-record.so.0
	install -m 755 $(OUT)/libjevents.so.1 $(DESTDIR)$(LIBDIR)/libjevents.so.1
	install -m 755 $(MPI) $(DESTDIR)$(LIBDIR)/libtopdown-mpi.so
	ln -sf libtopdown.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libtopdown.so.0
	ln -sf libtopdown.so.0 $(DESTDIR)$(LIBDIR)/libtopdown.so
	ln -sf libtopdown-record.so.0 $(DESTDIR)$(LIBDIR)/libtopdown-record.so
	ln -sf libjevents.so.1 $(DESTDIR)$(LIBDIR)/libjevents.so
	install -m 644 $(OUT)/libtopdown.a $(RECORD) $(JEVENTS) $(DESTDIR)$(LIBDIR)
	install -m 644 $(addprefix include/,$(INSTALLED)) $(DESTDIR)$(INCLUDEDIR)
	install -m 644 include/jevents/*.h $(DESTDIR)$(INCLUDEDIR)/jevents
	for name in $(JEVENTS_NAMES); do echo "#include \"jevents/$$name\"" > $(DESTDIR)$(INCLUDEDIR)/$$name || exit; done
	for name in topdown topdown-record jevents; do \
		$(CONFIGURE) -e 's|@includedir@|$(call BELOW_PREFIX,$(INCLUDEDIR))|' packaging/$$name.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/$$name.pc || exit; done
	for name in topdown-config topdown-config-version; do \
		$(CONFIGURE) -e 's|@includedir@|$(shell realpath -ms --relative-to=$(LIBDIR)/cmake/topdown $(INCLUDEDIR))|' packaging/$$name.cmake.in \
			> $(DESTDIR)$(LIBDIR)/cmake/topdown/$$name.cmake || exit; done
	$(TOPDOWN) share-files $(DESTDIR)$(DATADIR)
	install -d $(addprefix $(DESTDIR)$(DATADIR)/,man/man1 man/man3 man/man7 topdown/schema topdown/licenses)
	install -m 644 docs/schema/*.json $(DESTDIR)$(DATADIR)/topdown/schema
	install -m 644 LICENSE-MIT LICENSE-APACHE $(DESTDIR)$(DATADIR)/topdown/licenses
	install -m 644 cpus/deep/LICENSE $(DESTDIR)$(DATADIR)/topdown/licenses/LICENSE-CPUS
	install -m 644 debian/copyright $(DESTDIR)$(DATADIR)/topdown/licenses/LICENSE-THIRD-PARTY
	install -m 644 man/*.1 $(DESTDIR)$(DATADIR)/man/man1
	install -m 644 man/*.3 $(DESTDIR)$(DATADIR)/man/man3
	install -m 644 man/*.7 $(DESTDIR)$(DATADIR)/man/man7
	for page in $(notdir $(wildcard man/*.3)); do \
		for name in $$(sed -n 's/^\.Nm \([A-Za-z0-9_]*\).*/\1/p' man/$$page); do \
			[ $$name.3 = $$page ] || ln -sf $$page $(DESTDIR)$(DATADIR)/man/man3/$$name.3 || exit; done; done

uninstall: ## take away what install put there
	$(PLAIN_PATHS)
	rm -f $(addprefix $(DESTDIR)$(BINDIR)/,topdown $(notdir $(COMMANDS)))
	rm -f $(DESTDIR)$(LIBDIR)/libtopdown* $(DESTDIR)$(LIBDIR)/libjevents* $(addprefix $(DESTDIR)$(LIBDIR)/pkgconfig/,topdown.pc topdown-record.pc jevents.pc)
	rm -f $(addprefix $(DESTDIR)$(INCLUDEDIR)/,$(INSTALLED) $(JEVENTS_NAMES)) $(addprefix $(DESTDIR)$(DATADIR)/,$(SHARED))
	rm -rf $(DESTDIR)$(INCLUDEDIR)/jevents $(DESTDIR)$(LIBDIR)/cmake/topdown $(DESTDIR)$(DATADIR)/topdown

wheel: $(LIB) ## build a Python wheel that has libtopdown.so, in target/wheel
	@packaging/wheel || [ $$? = 77 ]

# (-d: cargo and rustc may be rustup's, of which dpkg knows nothing)
deb: ## Debian packages of what is committed or not, in target/deb
	rm -rf target/deb
	mkdir -p target/deb/libtopdown
	git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -xC target/deb/libtopdown
	cd target/deb/libtopdown && dpkg-buildpackage -us -uc -b -d

check-deb: ## the packages in a new root of Debian's stable: built twice to the same bytes, lintian, installed, tried, removed
	@c-tests/tools/bare-root c-tests/tools/debian-package

copyright: ## make debian/copyright from the crates' licences
	packaging/debian-copyright > target/copyright && mv target/copyright debian/copyright

clean: ## remove what was built
	$(CARGO) clean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "make %-12s %s\n", $$1, $$2}'

.PHONY: all programs benchmark-example demo check test quick check-vm explore check-arm64 check-root fuzz bench bench-counters bench-intervals bench-load bench-turns figure screenshot example-stat example-vm header index man failures cpus install uninstall wheel deb check-deb copyright clean help
