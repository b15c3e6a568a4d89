# libtopdown: `make` builds, `make demo` shows, `make check` tests; `make help` lists the rest.

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
CARGO ?= cargo
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
OUT := target/release
LIB := $(OUT)/libtopdown.so
CFLAGS ?= -O2 -g
WARNINGS := -Wall -Wextra -Wpedantic -Werror
SOURCES := Cargo.toml Cargo.lock build.rs $(wildcard .cargo/* abi/*) $(shell find src -name '*.rs')

all: $(LIB)

# Cargo is asked only if a source is newer, so that what was built here runs where no compiler is.
$(LIB): $(SOURCES)
	$(CARGO) build --release --locked
	@ln -sf libtopdown.so $(LIB).0
	@touch $(LIB)

.PHONY: all
