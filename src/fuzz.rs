//! What holds whatever the bytes are. Each function takes bytes, and panics if it does not.
//!
//! The fuzzers in fuzz/ call these with bytes that they make, the tests below with those in fuzz/corpus. Structures
//! are read from the bytes as they lie in memory, so that a file means the same to both, and to who looks at it.

use crate::capi::*;
use crate::detect;
use crate::detect::blockers::{RefusedCall, explain};
use crate::error::{TD_ENOTCOUNTING, TD_ESTALE, TD_EWRONGTHREAD};
use crate::group::{Group, PATIENCE, PlainGroup};
use crate::model::metrics::{LEVEL_1, LEVEL_2, TD_UNIT_SLOTS};
use crate::model::{self, Counting, MOST_NODES};
use crate::options::{Options, Target};
use crate::read::Shared;
use crate::sample::{L1, L2, Mark, Sample};
use crate::source::simulated::Mix;
use crate::sum::Sum;
use crate::sys::Kernel;
use crate::sys::cpu::Identity;
use crate::sys::numbers::contains;
use crate::sys::scripted::ScriptedKernel;
use crate::tree::Node;
use std::ffi::{CStr, c_int};
use std::io;
use std::ptr::{null, null_mut};

/// The one function of the interface that is written in assembler.
///
/// # Safety
/// As its header says.
unsafe fn td_read(td: *mut td, out: *mut Sample) -> c_int {
    unsafe extern "C" {
        fn td_read(td: *const Shared, out: *mut Sample) -> c_int;
    }
    // SAFETY: handles are where their Shared is.
    unsafe { td_read(td.cast(), out) }
}

/// Types for which any bytes are a value.
///
/// # Safety
/// They must be.
unsafe trait Plain: Default {}

// SAFETY: numbers, and nothing between them.
unsafe impl Plain for Sample {}
// SAFETY: as above.
unsafe impl Plain for Sum {}
// SAFETY: as above.
unsafe impl Plain for Mark {}
// SAFETY: as above.
unsafe impl Plain for Mix {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for u8 {}

/// Bytes to take values from; zeros come behind the last.
struct FuzzBytes<'a>(&'a [u8]);

impl FuzzBytes<'_> {
    fn take<T: Plain>(&mut self) -> T {
        let mut value = T::default();
        let (now, later) = self.0.split_at(self.0.len().min(size_of::<T>()));
        // SAFETY: there is room for as many bytes as a T has, and any make one.
        unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), (&raw mut value).cast(), now.len()) };
        self.0 = later;
        value
    }

    /// Puts eight bytes over some that a value has.
    fn spoil<T: Plain>(&mut self, value: &mut T) {
        let word = usize::from(self.take::<u8>()) % (size_of::<T>() / 8);
        let new: u64 = self.take();
        // SAFETY: the word lies within the value, and any bytes make one.
        unsafe { (&raw mut *value).cast::<u64>().add(word).write_unaligned(new) };
    }
}

/// A failure has a code that the header names for this call, and both of its texts.
fn refused(code: c_int, named: &[c_int]) {
    let mut text = [0; 64];
    // SAFETY: a text and its length; td_strerror's are static.
    let (length, short) =
        unsafe { (td_last_error(text.as_mut_ptr(), text.len()), CStr::from_ptr(td_strerror(code))) };
    assert!(named.contains(&code), "{code}: {short:?}");
    assert!(length > 0 && !short.is_empty());
}

/// `smt`: what is of none of the shares.
fn sound(shares: &[f64], smt: f64, error: f64, running: f64) {
    for share in shares.iter().chain([&smt, &error, &running]) {
        assert!((0.0..=1.0).contains(share), "{shares:?}, error {error}, running {running}");
    }
    assert!((shares.iter().sum::<f64>() + smt - 1.0).abs() <= 1e-9, "{shares:?} {smt}");
}

/// Both levels are right in themselves and agree, or were refused.
fn results(l1: (c_int, L1), l2: (c_int, L2), named: &[c_int]) {
    let ((code_1, l1), (code_2, l2)) = (l1, l2);
    let shares = [l1.retiring, l1.bad_speculation, l1.frontend_bound, l1.backend_bound];
    let parts = [
        [l2.heavy_operations, l2.light_operations],
        [l2.branch_mispredicts, l2.machine_clears],
        [l2.fetch_latency, l2.fetch_bandwidth],
        [l2.memory_bound, l2.core_bound],
    ];
    if code_2 == 0 {
        assert_eq!(code_1, 0, "level 2 without level 1");
        sound(parts.as_flattened(), 0.0, l2.error, l2.running);
        assert_eq!((l2.size as usize, l2.slots), (size_of::<L2>(), l1.slots));
        for (share, parts) in shares.iter().zip(parts) {
            assert!((share - parts[0] - parts[1]).abs() <= 1e-9, "{l1:?} {l2:?}");
        }
    } else {
        refused(code_2, if code_1 == 0 { &[-libc::ENOTSUP] } else { named });
    }
    if code_1 == 0 {
        sound(&shares, l1.smt_contention, l1.error, l1.running);
        assert_eq!(l1.size as usize, size_of::<L1>());
        assert!(l1.slots > 0);
    } else {
        refused(code_1, named);
    }
}

fn decoded(from: *const Sample, to: &Sample) {
    let (mut l1, mut l2) = Default::default();
    // SAFETY: `from` is NULL or a sample, too.
    let codes = unsafe { (td_decode_l1(from, to, &mut l1), td_decode_l2(from, to, &mut l2)) };
    results((codes.0, l1), (codes.1, l2), &[-libc::EINVAL, -libc::ENOTSUP, TD_ESTALE, TD_ENOTCOUNTING]);
    tree_decoded(from, to, codes.into(), &l1, &l2);
}

/// The nodes are those of both levels, or were refused as level 1 was.
fn tree_decoded(from: *const Sample, to: &Sample, codes: [c_int; 2], l1: &L1, l2: &L2) {
    let (mut nodes, mut count) = ([Node::default(); MOST_NODES + 1], 0);
    // SAFETY: `from` is NULL or a sample, and there is room for as many nodes as is said.
    let code = unsafe { td_decode_tree(from, to, nodes.as_mut_ptr(), nodes.len() as u32, &mut count) };
    nodes_are(code, &nodes, count, codes, l1, l2);
}

fn nodes_are(code: c_int, nodes: &[Node], count: u32, codes: [c_int; 2], l1: &L1, l2: &L2) {
    assert_eq!(code, codes[0]);
    if code != 0 {
        return;
    }
    let (nodes, rest) = nodes.split_at(count as usize);
    assert!(rest.iter().all(|node| *node == Node::default()), "more nodes than were said");
    assert!(
        [4, 5, 6, 8, 10].contains(&nodes.len()) || (12..=MOST_NODES).contains(&nodes.len()),
        "{}",
        nodes.len()
    );
    let one = LEVEL_1.iter().zip(l1.shares()).map(|(metric, share)| (metric.id, share, l1.error));
    let two = LEVEL_2.iter().zip(l2.shares()).map(|(metric, share)| (metric.id, share, l2.error));
    let named: Vec<_> = one.filter(|_| codes[0] == 0).chain(two.filter(|_| codes[1] == 0)).collect();
    for node in nodes {
        assert_eq!(node.size as usize, size_of::<Node>());
        assert!(codes[0] != 0 || node.flags == l1.flags, "{node:?}");
        assert!(codes[0] != 0 || node.unit != TD_UNIT_SLOTS || node.whole == l1.slots, "{node:?}");
        let named = named.iter().find(|(id, ..)| *id == node.id);
        if node.measured == 0 {
            assert!(node.value.is_nan() && node.low.is_nan() && node.high.is_nan() && named.is_none());
            continue;
        }
        assert!(0.0 <= node.low && node.low <= node.value && node.value <= node.high && node.high <= 1.0);
        if let Some((_, share, error)) = named {
            assert_eq!(node.value.to_bits(), share.to_bits(), "{node:?}");
            let most = error + 1e-9;
            assert!(node.high - node.value <= most && node.value - node.low <= most, "{node:?} {error}");
        }
    }
}

fn summed(sum: &Sum, named: &[c_int]) {
    let (mut l1, mut l2) = Default::default();
    // SAFETY: all are live.
    let codes = unsafe { (td_sum_l1(sum, &mut l1), td_sum_l2(sum, &mut l2)) };
    results((codes.0, l1), (codes.1, l2), named);
    let (mut nodes, mut count) = ([Node::default(); MOST_NODES + 1], 0);
    // SAFETY: all are live, and there is room for as many nodes as is said.
    let code = unsafe { td_sum_decode_tree(sum, nodes.as_mut_ptr(), nodes.len() as u32, &mut count) };
    nodes_are(code, &nodes, count, codes.into(), &l1, &l2);
}

/// Two samples.
pub fn decode(bytes: &[u8]) {
    let mut bytes = FuzzBytes(bytes);
    let (from, to) = (bytes.take(), bytes.take());
    decoded(&from, &to);
    decoded(null(), &to);
}

/// SLOTS and PERF_METRICS, twice.
pub fn raw(bytes: &[u8]) {
    let mut bytes = FuzzBytes(bytes);
    let [a, b, c, d] = std::array::from_fn(|_| bytes.take::<u64>());
    let (mut l1, mut l2) = Default::default();
    // SAFETY: both are live.
    let codes = unsafe { (td_decode_raw_l1(a, b, c, d, &mut l1), td_decode_raw_l2(a, b, c, d, &mut l2)) };
    results((codes.0, l1), (codes.1, l2), &[-libc::EINVAL, -libc::ENOTSUP, TD_ESTALE, TD_ENOTCOUNTING]);
}

/// A sum, as it lies in memory, and samples that are added to it.
pub fn sum(bytes: &[u8]) {
    let mut bytes = FuzzBytes(bytes);
    let made_here = bytes.take::<u8>() % 2 == 0;
    let mut sum = if made_here { Sum::default() } else { bytes.take() };
    let (mut from, mut to): (Sample, Sample) = (bytes.take(), bytes.take());
    while !bytes.0.is_empty() {
        match bytes.take::<u8>() % 4 {
            0 => bytes.spoil(&mut from),
            1 => bytes.spoil(&mut to),
            2 => from = to,
            _ => {
                // SAFETY: all are live.
                let code = unsafe { td_sum_add(&mut sum, &from, &to) };
                if code != 0 {
                    refused(code, &[-libc::EINVAL, TD_ESTALE]);
                }
            }
        }
    }
    // the library's own sums always are some
    let named = [TD_ENOTCOUNTING, -libc::ENOTSUP, -libc::EINVAL];
    summed(&sum, if made_here { &named[..2] } else { &named });
}

/// `struct td_options`, no longer than it says.
pub fn options(bytes: &[u8]) {
    // room for the size, which is always there, and behind it as much as it says
    let said = FuzzBytes(bytes).take::<u64>() as u32 as usize;
    let length = match said {
        0 => size_of::<COptions>(),
        length => length.clamp(4, 4096),
    };
    let mut room = vec![0_u32; length.div_ceil(4)].into_boxed_slice();
    let all: Vec<u8> = bytes.iter().copied().chain(std::iter::repeat(0)).take(length / 4 * 4).collect();
    for (word, four) in room.iter_mut().zip(all.chunks_exact(4)) {
        *word = u32::from_ne_bytes(four.try_into().expect("four bytes"));
    }
    if let Some(flags) = room.get_mut(1) {
        *flags |= TD_FLAG_SIMULATE; // a real PMU is not to be had by chance
    }
    let mut td = null_mut();
    // SAFETY: as long as it says, and no longer than any version's.
    let code = unsafe { td_open(&mut td, room.as_ptr().cast()) };
    if code != 0 {
        assert!(td.is_null(), "a failed open leaves nothing");
        return refused(code, &[-libc::EINVAL, -libc::E2BIG, -libc::ENOTSUP]);
    }
    // SAFETY: an open handle, which is closed once.
    unsafe {
        let mut sample = Sample::default();
        assert_eq!(td_read(td, &mut sample), 0);
        td_close(td);
    }
}

/// Calls on a simulated handle: readings, marks and sums of any bytes.
pub fn calls(bytes: &[u8]) {
    let mut bytes = FuzzBytes(bytes);
    let options = COptions { flags: TD_FLAG_SIMULATE, ..COptions::default() };
    let (mut td, mut sum, mut mark, mut mix) = (null_mut(), Sum::default(), Mark::default(), Mix::default());
    let (mut from, mut to) = (Sample::default(), Sample::default());
    let code = |code: c_int, named: &[c_int]| {
        if code != 0 {
            refused(code, named);
        }
        code == 0
    };
    // SAFETY: all is live until the last line, which closes the handle.
    unsafe {
        assert_eq!(td_open(&mut td, &options), 0);
        while !bytes.0.is_empty() {
            match bytes.take::<u8>() % 16 {
                0..3 => {
                    from = to;
                    assert_eq!(td_read(td, &mut to), 0);
                    if from.base.period == to.base.period && from.size != 0 {
                        assert!(to.slots >= from.slots, "totals went back");
                    }
                }
                3 => {
                    assert_eq!(td_reset(td), 0);
                    let (mut nodes, mut count) = ([Node::default(); 12], 0);
                    assert_eq!(td_list_nodes(td, nodes.as_mut_ptr(), 12, &mut count), 0);
                    assert!(
                        count == 12 && nodes.iter().all(|node| node.measured == 1 && node.value.is_nan())
                    );
                }
                4 => assert_eq!(td_mark_read_slowly(td, &mut mark), 0),
                5 => mark = bytes.take(),
                6 => bytes.spoil(&mut mark),
                7 => {
                    if code(td_mark_sample(td, &mark, &mut from), &[-libc::EINVAL, TD_ESTALE]) {
                        decoded(null(), &from);
                        decoded(&from, &to);
                    }
                }
                8 => {
                    mix = Mix { size: size_of::<Mix>() as u32, reserved: 0, ..bytes.take() };
                    code(td_simulate_mix(td, &mix), &[-libc::EINVAL]);
                }
                9 => {
                    bytes.spoil(&mut mix);
                    mix.size %= size_of::<Mix>() as u32 + 1; // so many bytes are there
                    code(td_simulate_mix(td, &mix), &[-libc::EINVAL]);
                }
                10 | 11 => assert_eq!(td_sum_begin(td, &mut sum), 0),
                12 | 13 => {
                    code(td_sum_end(td, &mut sum), &[-libc::EINVAL, TD_ESTALE, TD_ENOTCOUNTING]);
                }
                14 => bytes.spoil(&mut sum),
                _ => decoded(&from, &to),
            }
        }
        summed(&sum, &[TD_ENOTCOUNTING, -libc::ENOTSUP, -libc::EINVAL]);
        td_close(td);
        assert!(!code(td_read(td, &mut to), &[-libc::EBADF, TD_EWRONGTHREAD]));
    }
}

/// Files of /sys and /proc, and a call that fails. A line of hexadecimal numbers (family, model, virtual or not, the
/// call's number, its errno, a CPU, flags), then a path, a NUL, what is in the file, a NUL, and so on. What is not
/// there is as on a Sapphire Rapids; a file with nothing in it is not there.
pub fn detect(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (line, files) = text.split_once('\n').unwrap_or((&text, ""));
    let mut numbers = line.split(' ').map(|word| u32::from_str_radix(word, 16).unwrap_or(0));
    let mut number = || numbers.next().unwrap_or(0);
    let cpu = Identity {
        vendor: "GenuineIntel".into(),
        family: number(),
        model: number(),
        hypervisor: (number() != 0).then(|| "KVM".into()),
        ..Identity::default()
    };
    let (fails, errno, place, flags) = (number(), (number() & 0xfff).max(1) as i32, number(), number());
    let kernel = ScriptedKernel::sapphire_rapids();
    let mut files = files.split('\0');
    while let (Some(path), Some(text)) = (files.next(), files.next()) {
        if text.is_empty() { kernel.remove(path) } else { kernel.add(path, text) }
    }
    let options = Options {
        target: match flags & 3 {
            0 | 1 => Target::This,
            2 => Target::Task(place as i32),
            _ => Target::Cpu(place),
        },
        kernel: flags & 4 != 0,
        inherit: flags & 8 != 0,
        no_rdpmc: flags & 16 != 0,
        ..Options::default()
    };
    if let Ok(list) = kernel.text("/sys/devices/system/cpu/online") {
        assert!(contains(&list, place) || !contains(&format!("x,{list}"), place));
    }
    let refusal = io::Error::from_raw_os_error(errno);
    for attempt in [RefusedCall::Open("slots"), RefusedCall::Map, RefusedCall::Other("read")] {
        assert!(!explain(&kernel, &options, attempt, &refusal).to_string().is_empty());
    }
    match detect::e_cores(&kernel, &cpu, 0, 0) {
        Ok((pmu, plan)) => {
            kernel.fail(fails, errno);
            let opened = PlainGroup::open(kernel.clone(), &pmu, &plan, &options, None, PATIENCE);
            assert!(
                opened.as_ref().err().is_none_or(|error| error.code() < 0 && !error.to_string().is_empty())
            );
            drop(opened);
            assert_eq!(kernel.open_things(), 0);
        }
        Err(error) => assert_eq!(error.code(), -libc::ENOTSUP),
    }
    match detect::counters(&kernel, &cpu, flags >> 5 & 3) {
        Ok((pmu, plan)) => {
            kernel.fail(fails, errno);
            let opened = PlainGroup::open(kernel.clone(), &pmu, &plan, &options, None, PATIENCE);
            assert!(opened.as_ref().err().is_none_or(|error| error.code() < 0));
            drop(opened);
            assert_eq!(kernel.open_things(), 0);
        }
        Err(error) => assert!(error.code() < 0 && !error.to_string().is_empty()),
    }
    let pmu = match detect::pmu(&kernel, &cpu) {
        Ok(pmu) => pmu,
        Err(error) => {
            assert_eq!(error.code(), -libc::ENODEV);
            assert!(error.to_string().starts_with("no topdown counters on "));
            return;
        }
    };
    let most = match pmu.model.counting {
        Counting::PerfMetrics { level, .. } => level,
        other => panic!("{other:?}"),
    };
    assert!((1..=most).contains(&pmu.level));
    assert_eq!(model::at(pmu.row).map(|model| model.core), Some(pmu.model.core));
    assert!(pmu.cpus.is_some() || pmu.covers(place));
    kernel.fail(fails, errno);
    let opened = Group::open(kernel.clone(), &pmu, pmu.level, &options, None, PATIENCE);
    if let Err(error) = &opened {
        assert!(error.code() < 0 && !error.to_string().is_empty());
    }
    drop(opened);
    assert_eq!(kernel.open_things(), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Calls it with each file of a corpus.
    fn over(name: &str, target: fn(&[u8])) {
        let corpus = format!("{}/fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
        let files: Vec<_> = fs::read_dir(corpus).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(!files.is_empty());
        for file in files {
            eprintln!("{}", file.display()); // which it was, if it fails
            target(&fs::read(&file).unwrap());
        }
    }

    #[test]
    fn any_samples_decode_or_are_refused() {
        over("decode", decode);
    }

    #[test]
    fn any_registers_decode_or_are_refused() {
        over("raw", raw);
    }

    #[test]
    fn any_sum_decodes_or_is_refused() {
        over("sum", sum);
    }

    #[test]
    fn any_options_open_or_are_refused() {
        over("options", options);
    }

    #[test]
    fn any_calls_are_answered() {
        over("calls", calls);
    }

    #[test]
    fn any_files_make_a_pmu_or_a_reason() {
        over("detect", detect);
    }
}
