//! Samples of a ring, as perf_event_open(2) lays them out for the attributes that are used here.
#![forbid(unsafe_code)]

use perf_event_open_sys::bindings as perf;
use serde::{Deserialize, Serialize};
use topdown_seam::records::{TaskId, header};

/// How the callers of a function are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallGraph {
    /// The kernel follows frame pointers.
    #[default]
    FramePointers,
    /// So many bytes of the stack are copied with each sample, and unwound by what files say in .eh_frame.
    Dwarf(u32),
    /// The CPU's last branch records follow calls and returns (Intel's cores from Haswell on).
    Lbr,
}

/// What a sampler's attributes ask for besides what tells callers, in the order of the fields.
const SAMPLE_TYPE: u64 =
    (perf::PERF_SAMPLE_IP | perf::PERF_SAMPLE_TID | perf::PERF_SAMPLE_TIME | perf::PERF_SAMPLE_READ) as u64;

/// Registers that unwinding begins with (asm/perf_regs.h): frame pointer, stack pointer, instruction.
#[cfg(target_arch = "x86_64")]
const REGISTERS: &[u32] = &[6, 7, 8];
/// The same, and the link register between the first two.
#[cfg(target_arch = "aarch64")]
const REGISTERS: &[u32] = &[29, 30, 31, 32];
/// The stack pointer's place among them.
const STACK_POINTER: usize = REGISTERS.len() - 2;

/// Bits of registers.
fn mask(registers: &[u32]) -> u64 {
    registers.iter().fold(0, |mask, register| mask | 1 << register)
}

/// Calls in user mode that have not returned.
const CALL_STACK: u64 = (perf::PERF_SAMPLE_BRANCH_CALL_STACK | perf::PERF_SAMPLE_BRANCH_USER) as u64;
/// That many records are in no CPU.
const MOST_BRANCHES: u64 = 1024;
/// No event counts that much.
const NEVER: u64 = 1 << 62;

impl CallGraph {
    /// Sets what an event asks for that keeps branch records up to date between bursts: the CPU has them switched on while an event counts
    /// that wants them, and the kernel saves and restores them with the thread. Whether there is one to be.
    pub(crate) fn keeps_on(self, attr: &mut perf::perf_event_attr) -> bool {
        // (one that does not sample has none since Linux 6.8)
        attr.__bindgen_anon_1.sample_period = NEVER;
        attr.sample_type = u64::from(perf::PERF_SAMPLE_BRANCH_STACK);
        attr.branch_sample_type = CALL_STACK;
        self == CallGraph::Lbr
    }

    /// Sets what an event asks for whose samples have no callers.
    pub(crate) fn set_none(attr: &mut perf::perf_event_attr) {
        attr.sample_type = SAMPLE_TYPE;
    }

    /// Sets what a sampler asks for.
    pub(crate) fn set(self, attr: &mut perf::perf_event_attr) {
        attr.sample_type = SAMPLE_TYPE;
        match self {
            CallGraph::FramePointers => {
                attr.sample_type |= (perf::PERF_SAMPLE_CALLCHAIN | perf::PERF_SAMPLE_REGS_USER) as u64;
                attr.set_exclude_callchain_kernel(1);
                attr.sample_regs_user = mask(&REGISTERS[STACK_POINTER..=STACK_POINTER]);
            }
            CallGraph::Dwarf(bytes) => {
                attr.sample_type |= (perf::PERF_SAMPLE_REGS_USER | perf::PERF_SAMPLE_STACK_USER) as u64;
                attr.sample_regs_user = mask(REGISTERS);
                attr.sample_stack_user = bytes;
            }
            CallGraph::Lbr => {
                attr.sample_type |= (perf::PERF_SAMPLE_BRANCH_STACK | perf::PERF_SAMPLE_REGS_USER) as u64;
                attr.branch_sample_type = CALL_STACK;
                attr.sample_regs_user = mask(&REGISTERS[STACK_POINTER..]);
            }
        }
    }

    /// More than a sample takes in the ring: 127 callers, the stack or 32 branch records, and counts.
    pub(crate) fn most_bytes(self) -> usize {
        match self {
            CallGraph::FramePointers => 4096,
            CallGraph::Dwarf(bytes) => 1024 + bytes as usize,
            CallGraph::Lbr => 2048,
        }
    }
}
/// What the sideband's attributes ask for: it follows each record.
pub(crate) const SIDEBAND_TYPE: u64 = (perf::PERF_SAMPLE_TID | perf::PERF_SAMPLE_TIME) as u64;

/// Values from this one up in a call chain say what follows, and are no addresses.
const CONTEXT: u64 = -4095_i64 as u64;
/// Addresses of the kernel follow: those of user mode, if there are any, come behind them.
const IN_KERNEL: u64 = -128_i64 as u64;
/// Where the retire latency is in PERF_SAMPLE_WEIGHT_STRUCT.
pub(crate) const LATENCY: u32 = 48;
/// An address that no user mode has, where nothing follows.
const KERNEL_HALF: u64 = 1 << 63;

/// One sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawSample {
    /// A record before it is missing, or the kernel throttled the event.
    pub after_gap: bool,
    /// The CPU switched to another thread since the sample before it. (Of a CPU's group alone)
    pub switched: bool,
    pub pid: i32,
    pub tid: i32,
    pub time: u64,
    /// For how long the group was enabled, and for how long it counted, while the thread ran.
    pub enabled: u64,
    pub running: u64,
    /// What each event of the group has counted.
    pub counts: Vec<u64>,
    /// Addresses from the instruction that was interrupted to the outermost caller.
    pub chain: Vec<u64>,
    /// The first so many are the kernel's.
    pub in_kernel: usize,
    /// Of user mode, where it is known.
    pub stack_pointer: Option<u64>,
    /// What is to be unwound for these.
    pub copy: Option<StackCopy>,
    /// Of a sampler that asks for it, in cycles.
    pub latency: Option<u16>,
    /// Of how many events it is the sample, as the sampler knows.
    pub stands_for: u64,
}

impl RawSample {
    /// Of the idle thread. (In user mode, 0 is a process of another namespace)
    pub fn is_idle(&self) -> bool {
        self.tid == 0 && self.in_kernel > 0 && self.in_kernel == self.chain.len()
    }
}

/// REGISTERS, and memory from the stack pointer on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StackCopy {
    pub registers: Vec<u64>,
    pub stack: Vec<u8>,
}

/// A record of a sampler's ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SamplerRecord {
    Sample(RawSample),
    /// So many records found no room.
    Lost(u64),
    /// The event was stopped, for it had more interrupts than kernel.perf_event_max_sample_rate permits, or goes on.
    Throttled,
    /// The thread was descheduled, or runs again.
    Descheduled,
    /// A sample that cannot be read.
    Unreadable,
    Other,
}

/// Reads words one after the other.
struct RecordFields<'a>(&'a [u64]);

impl<'a> RecordFields<'a> {
    fn word(&mut self) -> Option<u64> {
        Some(self.many(1)?[0])
    }

    fn many(&mut self, n: u64) -> Option<&'a [u64]> {
        let (words, rest) = self.0.split_at_checked(usize::try_from(n).ok()?)?;
        self.0 = rest;
        Some(words)
    }
}

/// Of a sampler's ring.
pub(crate) fn sampled(record: &[u64], callers: CallGraph) -> SamplerRecord {
    let &[first, ref body @ ..] = record else { return SamplerRecord::Other };
    match header(first).0 {
        perf::PERF_RECORD_SAMPLE => {
            sample(body, callers).map_or(SamplerRecord::Unreadable, SamplerRecord::Sample)
        }
        perf::PERF_RECORD_LOST => {
            body.get(1).map_or(SamplerRecord::Unreadable, |lost| SamplerRecord::Lost(*lost))
        }
        perf::PERF_RECORD_THROTTLE | perf::PERF_RECORD_UNTHROTTLE => SamplerRecord::Throttled,
        perf::PERF_RECORD_SWITCH => SamplerRecord::Descheduled,
        _ => SamplerRecord::Other,
    }
}

/// Of an event whose samples have no callers, beside one whose samples have: such a sample ends behind its counts.
pub(crate) fn without_callers(record: &[u64]) -> Option<RawSample> {
    let &[first, ref body @ ..] = record else { return None };
    let mut fields = RecordFields(body);
    let (_ip, sample) = beginning(&mut fields).filter(|_| header(first).0 == perf::PERF_RECORD_SAMPLE)?;
    fields.0.is_empty().then_some(sample)
}

/// The instruction, and what is told before the callers.
fn beginning(fields: &mut RecordFields) -> Option<(u64, RawSample)> {
    let &[ip, task, time, events, enabled, running] = fields.many(6)? else { return None };
    let TaskId { pid, tid } = TaskId::of(task);
    let counts = fields.many(events)?.to_vec();
    Some((ip, RawSample { pid, tid, time, enabled, running, counts, ..RawSample::default() }))
}

fn sample(body: &[u64], callers: CallGraph) -> Option<RawSample> {
    let mut fields = RecordFields(body);
    let (ip, sample) = beginning(&mut fields)?;
    let (mut chain, mut in_kernel, mut copy, mut latency) = (Vec::new(), 0, None, None);
    let stack_pointer = match callers {
        CallGraph::FramePointers => {
            let callers = fields.word()?;
            let mut kernel = false;
            for word in fields.many(callers)?.iter().copied() {
                if word >= CONTEXT {
                    kernel = word == IN_KERNEL;
                } else {
                    chain.push(word);
                    in_kernel += usize::from(kernel);
                }
            }
            let stack_pointer = user_registers(&mut fields, 1)?.1.first().copied();
            latency = fields.word().map(|weight| (weight >> LATENCY) as u16);
            stack_pointer
        }
        CallGraph::Dwarf(_) => {
            copy = stack_copy(&mut fields)?;
            copy.as_ref().map(|copy| copy.registers[STACK_POINTER])
        }
        CallGraph::Lbr => {
            chain = called_from(&mut fields)?;
            let registers = user_registers(&mut fields, 2)?.1;
            match registers.get(1) {
                None => chain.clear(), // (a thread of the kernel: these are of whoever ran before)
                // (the records tell who called, and not what runs)
                Some(from) if ip >= KERNEL_HALF => chain.insert(0, *from),
                Some(_) => {}
            }
            registers.first().copied()
        }
    };
    let alone = chain.is_empty();
    if chain.first() != Some(&ip) || callers == CallGraph::Lbr {
        chain.insert(0, ip);
        in_kernel += usize::from(in_kernel > 0 || alone && ip >= KERNEL_HALF);
    }
    Some(RawSample { chain, in_kernel, stack_pointer, copy, latency, ..sample })
}

/// Addresses to which calls return, the last call's first: of branch records that follow calls.
fn called_from(fields: &mut RecordFields) -> Option<Vec<u64>> {
    let records = fields.word().filter(|records| *records <= MOST_BRANCHES)?;
    let from = fields.many(3 * records)?.iter().step_by(3); // (from, to, flags)
    let is_call = |from: &&u64| **from != 0 && **from < KERNEL_HALF;
    Some(from.take_while(is_call).map(|from| from + 1).collect()) // (somewhere behind the call's first byte)
}

/// Whose registers they are, and so many of them, or none: there are none.
fn user_registers<'a>(fields: &mut RecordFields<'a>, registers: usize) -> Option<(u64, &'a [u64])> {
    let abi = fields.word()?;
    let registers = if abi == u64::from(perf::PERF_SAMPLE_REGS_ABI_NONE) { 0 } else { registers };
    Some((abi, fields.many(registers as u64)?))
}

/// None within: there are no registers, or those of a program of 32 bits.
fn stack_copy(fields: &mut RecordFields) -> Option<Option<StackCopy>> {
    let (abi, registers) = user_registers(fields, REGISTERS.len())?;
    let size = fields.word()?;
    let words = fields.many(size / 8)?;
    let copied = if size > 0 { usize::try_from(fields.word()?).ok()? } else { 0 };
    let is_64_bit = abi == u64::from(perf::PERF_SAMPLE_REGS_ABI_64);
    Some(is_64_bit.then(|| {
        let mut stack = vec![0; 8 * words.len()];
        stack.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_ne_bytes()));
        stack.truncate(copied);
        StackCopy { registers: registers.to_vec(), stack }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn record(kind: u64, body: &[u64]) -> Vec<u64> {
        [&[kind], body].concat()
    }

    /// Of a record of this kind.
    fn sampled(kind: u64, body: &[u64], callers: CallGraph) -> SamplerRecord {
        super::sampled(&record(kind, body), callers)
    }

    #[test]
    fn a_sample_has_counts_and_addresses() {
        let user = -512_i64 as u64; // PERF_CONTEXT_USER
        let body = [0x1000, 7 << 32 | 6, 99, 2, 50, 40, 600, 300, 3, user, 0x1000, 0x2000, 2, 0x7000];
        let (enabled, running, counts) = (50, 40, vec![600, 300]);
        let chain = vec![0x1000, 0x2000];
        let expected = RawSample {
            after_gap: false,
            switched: false,
            pid: 6,
            tid: 7,
            time: 99,
            enabled,
            running,
            counts,
            chain,
            in_kernel: 0,
            stack_pointer: Some(0x7000),
            copy: None,
            stands_for: 0,
            latency: None,
        };
        assert_eq!(sampled(9, &body, CallGraph::FramePointers), SamplerRecord::Sample(expected.clone()));
        let without_chain = [0x1000, 7 << 32 | 6, 99, 2, 50, 40, 600, 300, 0, 0];
        let alone = RawSample { chain: vec![0x1000], stack_pointer: None, ..expected.clone() };
        assert_eq!(
            sampled(9, &without_chain, CallGraph::FramePointers),
            SamplerRecord::Sample(alone.clone())
        );
        let timed = [&body[..], &[57 << 48 | 3 << 32 | 9]].concat();
        assert_eq!(
            sampled(9, &timed, CallGraph::FramePointers),
            SamplerRecord::Sample(RawSample { latency: Some(57), ..expected.clone() })
        );
        for len in 0..body.len() {
            assert_eq!(
                sampled(9, &body[..len], CallGraph::FramePointers),
                SamplerRecord::Unreadable,
                "{len}"
            );
        }
        assert_eq!(sampled(2, &[1, 5], CallGraph::FramePointers), SamplerRecord::Lost(5));
        // one without callers ends behind the counts
        let counted = RawSample { chain: Vec::new(), ..alone };
        assert_eq!(without_callers(&record(9, &without_chain[..8])), Some(counted));
        for other in [&body[..], &without_chain, &without_chain[..9], &without_chain[..7]] {
            assert_eq!(without_callers(&record(9, other)), None);
        }
        assert_eq!(without_callers(&record(2, &without_chain[..8])), None);
        // more values than there can be
        assert_eq!(
            sampled(9, &[0x1000, 0, 0, u64::MAX, 0, 0, 1], CallGraph::FramePointers),
            SamplerRecord::Unreadable
        );
        assert_eq!(sampled(5, &[1, 2, 3], CallGraph::FramePointers), SamplerRecord::Throttled);
        assert_eq!(sampled(14, &[], CallGraph::FramePointers), SamplerRecord::Descheduled);
    }

    #[test]
    fn a_sample_has_registers_and_as_much_of_the_stack_as_was_copied() {
        let registers: Vec<u64> = (1..=REGISTERS.len() as u64).collect();
        let words = |abi: u64, stack: &[u64]| {
            let registers = if abi == 0 { &[] } else { &registers[..] };
            [&[0x1000, 7 << 32 | 6, 99, 2, 50, 40, 600, 300, abi], registers, stack].concat()
        };
        let read = |body: &[u64]| match sampled(9, body, CallGraph::Dwarf(16)) {
            SamplerRecord::Sample(sample) => {
                let known = sample.copy.as_ref().map(|copy| copy.registers[STACK_POINTER]);
                assert_eq!(sample.stack_pointer, known);
                Some((sample.chain, sample.copy))
            }
            _ => None,
        };
        let copy = |stack: &[u64]| Some(StackCopy { registers: registers.clone(), stack: bytes(stack) });
        let whole = words(2, &[16, 0xa, 0xb, 16]);
        assert_eq!(read(&whole), Some((vec![0x1000], copy(&[0xa, 0xb]))));
        assert_eq!(read(&words(2, &[16, 0xa, 0xb, 8])), Some((vec![0x1000], copy(&[0xa]))));
        assert_eq!(read(&words(2, &[0])), Some((vec![0x1000], copy(&[]))));
        // no registers; those of 32 bits
        assert_eq!(read(&words(0, &[0])), Some((vec![0x1000], None)));
        assert_eq!(read(&words(1, &[16, 0xa, 0xb, 16])), Some((vec![0x1000], None)));
        for len in 0..whole.len() {
            assert_eq!(read(&whole[..len]), None, "{len}");
        }
        assert_eq!(read(&words(2, &[u64::MAX, 1])), None);
    }

    #[test]
    fn branch_records_tell_from_where_functions_were_called() {
        let words = |records: &[[u64; 3]]| {
            let mut words = vec![0x1000, 7 << 32 | 6, 99, 2, 50, 40, 600, 300, records.len() as u64];
            words.extend(records.as_flattened());
            words.extend([2, 0x7000, 0x1000]);
            words
        };
        let read = |body: &[u64]| match sampled(9, body, CallGraph::Lbr) {
            SamplerRecord::Sample(sample) => Some((sample.chain, sample.stack_pointer)),
            _ => None,
        };
        // a leaf was called at 0x2004, its caller at 0x3010
        let whole = words(&[[0x2004, 0xff0, 1], [0x3010, 0x2000, 0], [0, 0, 0], [0x5000, 0x3000, 0]]);
        assert_eq!(read(&whole), Some((vec![0x1000, 0x2005, 0x3011], Some(0x7000))));
        assert_eq!(read(&words(&[])), Some((vec![0x1000], Some(0x7000))));
        // (the byte before the instruction, where it was called by itself)
        assert_eq!(read(&words(&[[0xfff, 0xff0, 0]])), Some((vec![0x1000, 0x1000], Some(0x7000))));
        // from the kernel
        assert_eq!(read(&words(&[[u64::MAX, 0x1000, 0]])), Some((vec![0x1000], Some(0x7000))));
        for len in 0..whole.len() {
            assert_eq!(read(&whole[..len]), None, "{len}");
        }
        // in the kernel, which 0x1000 has called; and a thread of the kernel, which has the records of another one
        let mut in_kernel = whole.clone();
        in_kernel[0] = KERNEL_HALF + 8;
        let chain = vec![KERNEL_HALF + 8, 0x1000, 0x2005, 0x3011];
        assert_eq!(read(&in_kernel), Some((chain, Some(0x7000))));
        let registers = in_kernel.len() - 3;
        in_kernel.truncate(registers);
        in_kernel.push(0);
        assert_eq!(read(&in_kernel), Some((vec![KERNEL_HALF + 8], None)));
        let mut most = vec![0x1000, 0, 99, 2, 50, 40, 600, 300, u64::MAX];
        most.extend([0; 30]);
        assert_eq!(read(&most), None);
    }

    #[test]
    fn what_keeps_branch_records_on_asks_for_those_of_the_sampler_and_never_samples() {
        let (mut sampler, mut keeper) = (perf::perf_event_attr::default(), perf::perf_event_attr::default());
        CallGraph::Lbr.set(&mut sampler);
        assert!(CallGraph::Lbr.keeps_on(&mut keeper));
        assert_eq!(sampler.branch_sample_type, 1 << 11 | 1); // CALL_STACK, USER
        assert_eq!(keeper.branch_sample_type, sampler.branch_sample_type);
        let branches = u64::from(perf::PERF_SAMPLE_BRANCH_STACK);
        assert_eq!((sampler.sample_type & branches, keeper.sample_type), (branches, branches));
        assert_eq!(sampler.sample_type & perf::PERF_SAMPLE_CALLCHAIN as u64, 0);
        let others = [CallGraph::FramePointers, CallGraph::Dwarf(8192)];
        assert!(others.iter().all(|other| !other.keeps_on(&mut keeper.clone())));
    }

    #[test]
    fn a_chain_begins_in_the_kernel_or_not() {
        let (kernel, user, ip) = (-128_i64 as u64, -512_i64 as u64, 0xffff_ffff_8100_0000);
        let of = |ip: u64, chain: &[u64]| {
            let mut words = vec![ip, 0, 0, 1, 0, 0, 5, chain.len() as u64];
            words.extend(chain);
            words.push(0); // (no registers)
            match sampled(9, &words, CallGraph::FramePointers) {
                SamplerRecord::Sample(sample) => (sample.in_kernel, sample.chain),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(of(ip, &[kernel, ip, ip + 8, user, 0x1000]), (2, vec![ip, ip + 8, 0x1000]));
        assert_eq!(of(ip, &[kernel, ip + 8, user, 0x1000]), (2, vec![ip, ip + 8, 0x1000]));
        // [vsyscall] is in user mode
        let vsyscall = 0xffff_ffff_ff60_0000;
        assert_eq!(of(vsyscall, &[user, vsyscall, 0x1000]), (0, vec![vsyscall, 0x1000]));
        assert_eq!((of(ip, &[]), of(0x1000, &[])), ((1, vec![ip]), (0, vec![0x1000])));
    }
}
