//! libtopdown-preload.so: loaded before a program's own libraries (LD_PRELOAD), it measures the program's threads and
//! regions from start to end, and the program runs as it would without.

mod engine;
#[cfg(target_arch = "x86_64")]
mod hooks;
#[cfg(target_arch = "x86_64")]
mod instrument;

#[cfg(target_arch = "x86_64")]
mod start {
    use super::{hooks, instrument};

    extern "C" fn start() {
        hooks::start();
        instrument::start();
    }

    extern "C" fn finish() {
        hooks::finish();
    }

    #[used]
    #[unsafe(link_section = ".init_array")]
    static START: extern "C" fn() = start;
    #[used]
    #[unsafe(link_section = ".fini_array")]
    static FINISH: extern "C" fn() = finish;
}
