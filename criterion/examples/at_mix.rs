//! Of the emulated machine (c-tests/vm): slots that wait for memory, of a loop at a mix that is known. Prints what an iteration truly has, and
//! what Criterion has found. `at_mix FILE MEMORY` measures the loop in time, and leaves a report; so many sixteenths of backend bound are
//! memory bound.

use criterion::Criterion;
use std::arch::asm;
use std::path::Path;
use std::time::Duration;
use topdown_criterion::{Report, Slots};

/// vm_mix_set (c-tests/vm/mix.h): retiring, bad speculation and frontend bound in 1/64 of slots; heavy operations, mispredicts, latency and
/// memory in 1/16 of their parent.
fn set_mix(parts: [u64; 7]) {
    const ARCH_SET_GS: u64 = 0x1001;
    let shifts = [34, 28, 22, 18, 14, 10, 6];
    let value = parts.iter().zip(shifts).fold(0x2a << 41, |value, (part, shift)| value | part << shift);
    // SAFETY: no program here uses the register GS, by which the machine is told
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, value) };
}

fn turns(mut count: u64) {
    // SAFETY: a loop of two instructions
    unsafe { asm!("2: dec {count}", "jnz 2b", count = inout(reg) count, options(nomem, nostack)) };
    let _ = count;
}

fn found(home: &Path, name: &str) -> f64 {
    let text = std::fs::read_to_string(home.join(name).join("new/estimates.json")).unwrap();
    let slope = text.split("\"slope\":").nth(1).unwrap().split("\"point_estimate\":").nth(1).unwrap();
    slope.split([',', '}']).next().unwrap().parse().unwrap()
}

fn criterion(home: &Path) -> Criterion {
    Criterion::default()
        .output_directory(home)
        .sample_size(10)
        .warm_up_time(Duration::from_millis(5))
        .measurement_time(Duration::from_millis(50))
        .nresamples(2000)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let home = std::env::temp_dir().join("topdown-criterion-at-mix");
    match &arguments[..] {
        [file, memory] => leave_report(&home, file, memory.parse().unwrap()),
        _ => count_slots(&home),
    }
}

fn leave_report(home: &Path, file: &str, memory: u64) {
    set_mix([16, 4, 8, 4, 12, 8, memory]);
    let report = Report::to(file).unwrap_or_else(|error| panic!("{error}"));
    criterion(home).bench_function("loop", |bencher| {
        bencher.iter_custom(|iterations| report.run("loop", iterations, || turns(6000)))
    });
    report.finish().unwrap_or_else(|error| panic!("{error}"));
}

fn count_slots(home: &Path) {
    set_mix([16, 4, 8, 4, 12, 8, 13]);
    let slots_per_cycle = 6.0; // of Sapphire Rapids; an instruction is a cycle
    let truth = slots_per_cycle * 36.0 / 64.0 * 13.0 / 16.0;
    let (short, long) = (1000, 6000);
    let slots = Slots::of("memory_bound").unwrap_or_else(|error| panic!("{error}"));
    let mut criterion = criterion(home).with_measurement(slots);
    criterion.bench_function("short", |bencher| bencher.iter(|| turns(short)));
    criterion.bench_function("long", |bencher| bencher.iter(|| turns(long)));
    drop(criterion); // (it tells the bound)
    let found = found(home, "long") - found(home, "short");
    println!("true {} found {found}", 2.0 * truth * (long - short) as f64);
}
