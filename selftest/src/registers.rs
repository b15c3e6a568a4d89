//! What the kernel does to the registers: where they start, who zeroes them, that they come back.
#![forbid(unsafe_code)]

use super::kernels::work;
use super::machine::TestMachine;
use super::raw::{
    self, ControlPage, EventTarget, METRICS, METRICS_INDEX, MappedEvent, RegisterPair, SLOTS, SLOTS_INDEX,
    SlotsGroup, Start,
};
use super::report::{CheckObstacle, CheckResult, seen, untried};
use super::sharing::beside_a_rival;
use std::time::Duration;

/// What system calls and the harness itself may count, in slots.
pub const HANDFUL: u64 = 65_536;
/// Much more than that: some millions of slots.
pub const PLENTY: u64 = 1_000_000;
/// What naps and moves may add to registers that go on: a fiftieth, as caches are cold after each. A field may move by
/// so many units by that, and by roundings.
const ADDED: u64 = 50;
const UNITS: u64 = 8;

/// The registers, which have to be there.
pub fn registers(group: &SlotsGroup) -> Result<RegisterPair, CheckObstacle> {
    group.registers().ok_or_else(|| {
        let ControlPage { index, rdpmc, .. } = group.page();
        CheckObstacle(format!(
            "the registers cannot be read here: index {index:#x}, cap_user_rdpmc {}",
            u8::from(rdpmc)
        ))
    })
}

/// The numbers that the control pages show.
pub fn pages(machine: &TestMachine) -> CheckResult {
    let group = SlotsGroup::start(&machine.pmu)?;
    work(PLENTY);
    registers(&group)?;
    let page = group.page();
    let members: Vec<u32> = group.member_pages().iter().map(|page| page.index).collect();
    group.disable()?;
    let off = group.page().index;
    let named = page.index == SLOTS_INDEX && members.iter().all(|index| *index == METRICS_INDEX);
    let members: Vec<String> = members.iter().map(|index| format!("{index:#x}")).collect();
    seen(
        named && page.width == 48 && page.rdpmc && off == 0,
        format!(
            "index {:#x}, metric events {}, width {}, cap_user_rdpmc {}, index when disabled {off:#x}",
            page.index,
            members.join(" "),
            page.width,
            u8::from(page.rdpmc)
        ),
    )
}

/// read(2) zeroes the registers, and the page does not tell.
pub fn reset_on_read(machine: &TestMachine) -> CheckResult {
    let group = SlotsGroup::start(&machine.pmu)?;
    work(PLENTY);
    let (before, page, switches) = (registers(&group)?, group.page(), raw::switches());
    let count = group.count()?;
    let (after, again) = (registers(&group)?, group.page());
    let moved = again.sequence.wrapping_sub(page.sequence);
    // a context switch tells, but of itself
    let silent = (moved, again.offset) == (0, page.offset) || raw::switches() != switches;
    seen(
        before.slots > PLENTY && after.slots < HANDFUL && silent,
        format!(
            "SLOTS {} before, count {}, SLOTS {} after; offset {} and {}; the sequence number moved by {moved}",
            before.slots, count.slots, after.slots, page.offset, again.offset
        ),
    )
}

/// RESET zeroes the registers of a running group only.
pub fn reset_while_off(machine: &TestMachine) -> CheckResult {
    let group = SlotsGroup::start(&machine.pmu)?;
    work(PLENTY);
    let before = registers(&group)?;
    group.disable()?;
    group.reset()?;
    group.enable()?;
    let after = registers(&group)?;
    group.reset()?;
    let running = registers(&group)?;
    seen(
        after.slots >= before.slots && running.slots < HANDFUL,
        format!(
            "SLOTS {} before, {} after; {} after RESET while it ran",
            before.slots, after.slots, running.slots
        ),
    )
}

/// A group that is opened enabled and grows while it runs loses its first interval.
pub fn opened_enabled(machine: &TestMachine) -> CheckResult {
    let mut whole = None;
    for _ in 0..20 {
        // one, as in topdown.txt: adding a second one mends it
        let group = SlotsGroup::open(&machine.pmu, 1, EventTarget::Thread(0), Start::Running)?;
        let sequence = group.page().sequence;
        work(PLENTY);
        let shown = registers(&group)?;
        if group.page().sequence != sequence {
            continue; // a context switch ends the loss
        }
        let count = group.count()?;
        let is_lost = count.slots < shown.slots - shown.slots / 10;
        let found = format!("SLOTS {}, but the first read(2) counts {}", shown.slots, count.slots);
        if is_lost {
            return seen(true, found);
        }
        whole = Some(found); // (or one came between the two)
    }
    match whole {
        Some(found) => seen(false, found),
        None => untried("a context switch came into each of 20 attempts"),
    }
}

/// offset + RDPMC, the usual formula, against the kernel's count.
pub fn offset_rule(machine: &TestMachine) -> CheckResult {
    let group = SlotsGroup::start(&machine.pmu)?;
    let formula = || -> Result<i64, CheckObstacle> {
        let (page, shown) = (group.page(), registers(&group)?);
        Ok(page.offset.wrapping_add(shown.slots as i64))
    };
    work(PLENTY);
    naps(5);
    let switched = formula()?;
    let count = group.count()?.slots as i64;
    work(PLENTY / 4);
    let read = formula()?;
    let total = group.count()?.slots as i64;
    let wrong = |said: i64, is: i64| (said - is).abs() > is / 20;
    seen(
        wrong(switched, count) || wrong(read, total),
        format!(
            "after context switches it says {switched} of {count} slots, after read(2) {read} of {total}"
        ),
    )
}

fn naps(n: u32) {
    for _ in 0..n {
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Whether the registers go on from where they were.
fn go_on(before: RegisterPair, after: RegisterPair, fields: usize, what: &str) -> CheckResult {
    let moved = (0..fields).map(|k| before.field(k).abs_diff(after.field(k))).max().unwrap_or(0);
    seen(
        after.slots >= before.slots && after.slots - before.slots <= before.slots / ADDED && moved <= UNITS,
        format!(
            "SLOTS {} before, {} after; fields moved by {moved} units at the most, {what}",
            before.slots, after.slots
        ),
    )
}

/// Context switches, beside another that has the same counters on the same CPU.
pub fn restored(machine: &TestMachine) -> CheckResult {
    let group = SlotsGroup::start(&machine.pmu)?;
    beside_a_rival(machine, machine.cpu, || {
        work(10 * PLENTY);
        let (before, switches) = (registers(&group)?, raw::switches());
        naps(10);
        let (after, switches) = (registers(&group)?, raw::switches() - switches);
        if switches == 0 {
            return untried("no context switch happened");
        }
        go_on(before, after, machine.pmu.metrics, &format!("{switches} context switches"))
    })?
}

/// From one CPU to another, where another has the same counters, and back.
pub fn migrated(machine: &TestMachine) -> CheckResult {
    let Some(other) = machine.other else { return untried("there is one CPU only with these counters") };
    let group = SlotsGroup::start(&machine.pmu)?;
    beside_a_rival(machine, other, || {
        work(10 * PLENTY);
        let before = registers(&group)?;
        raw::pin(other)?;
        let away = registers(&group)?;
        for _ in 0..9 {
            machine.return_home()?;
            raw::pin(other)?;
        }
        machine.return_home()?;
        let after = registers(&group)?;
        let what = format!("20 moves, SLOTS {} after the first, to CPU {other}", away.slots);
        go_on(before, after, machine.pmu.metrics, &what)
    })?
}

/// The sequence number counts context switches.
pub fn sequence(machine: &TestMachine) -> CheckResult {
    let group = SlotsGroup::start(&machine.pmu)?;
    let mut steps: Vec<u32> = Vec::new();
    for _ in 0..100 {
        let (from, switches) = (group.page().sequence, raw::switches());
        naps(1);
        if raw::switches() - switches == 1 {
            steps.push(group.page().sequence.wrapping_sub(from));
        }
    }
    if steps.is_empty() {
        return untried("no nap was one context switch");
    }
    seen(
        steps.iter().all(|step| *step == 6),
        format!("{} switches, it moved by {}", steps.len(), tally(&steps)),
    )
}

/// How often each value comes: `6 (100 times)`.
pub fn tally<T: Ord + std::fmt::Display>(values: &[T]) -> String {
    let mut times = std::collections::BTreeMap::new();
    for value in values {
        *times.entry(value).or_insert(0) += 1;
    }
    times.iter().map(|(value, n)| format!("{value} ({n} times)")).collect::<Vec<_>>().join(", ")
}

/// On an E-core the page says that there is nothing to read, and SLOTS cannot be opened.
pub fn e_core(machine: &TestMachine) -> CheckResult {
    let Some(cpu) = machine.e_core else { return untried("there is no E-core") };
    let group = SlotsGroup::start(&machine.pmu)?;
    raw::pin(cpu)?;
    work(1000);
    let index = group.page().index;
    raw::pin(machine.cpu)?;
    let opened = MappedEvent::open(&machine.pmu, SLOTS, EventTarget::Cpu(cpu), Start::Disabled, None);
    let answer = opened.map_or_else(|error| error.raw_os_error().unwrap_or(0), |_| 0);
    if answer == libc::EACCES {
        return untried(format!("counting a CPU is not permitted; run it as root (index there: {index:#x})"));
    }
    seen(
        index == 0 && answer == libc::ENOENT,
        format!(
            "index {index:#x} on CPU {cpu}; opening SLOTS there: errno {answer} (ENOENT is {})",
            libc::ENOENT
        ),
    )
}

/// A metric event twice in a group.
pub fn duplicate(machine: &TestMachine) -> CheckResult {
    let open = |config, leader| {
        MappedEvent::open(&machine.pmu, config, EventTarget::Thread(0), Start::Disabled, leader)
    };
    let leader = open(SLOTS, None)?;
    let _first = open(METRICS, Some(&leader))?;
    let answer = open(METRICS, Some(&leader)).map_or_else(|error| error.raw_os_error().unwrap_or(0), |_| 0);
    seen(answer == libc::EINVAL, format!("errno {answer} (EINVAL is {})", libc::EINVAL))
}

/// Level 2 codes on a CPU whose metric events are of level 1.
pub fn junk(machine: &TestMachine) -> CheckResult {
    if machine.pmu.metrics > 4 {
        return untried("this PMU has level 2");
    }
    let group = SlotsGroup::start(&machine.pmu)?;
    drop(group);
    let leader = MappedEvent::open(&machine.pmu, SLOTS, EventTarget::Thread(0), Start::Running, None)?;
    match MappedEvent::open(
        &machine.pmu,
        METRICS + 0x400,
        EventTarget::Thread(0),
        Start::Disabled,
        Some(&leader),
    ) {
        Ok(event) => {
            let index = event.page().index;
            seen(index != METRICS_INDEX, format!("0x8400 opens, with index {index:#x}"))
        }
        Err(error) => seen(false, format!("0x8400 is refused: {error}")),
    }
}
