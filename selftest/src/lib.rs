//! What is behind `topdown check --selftest`: what is assumed of silicon and of the kernel, tried on the machine at hand, in a report to
//! send. docs/selftest.md says what each check tries.

#![cfg(target_arch = "x86_64")] // its microkernels, and what it tries, are of x86
#![deny(unsafe_code)] // allowed in two modules

mod bottlenecks;
mod costs;
mod fields;
mod kernels;
mod machine;
mod raw;
mod registers;
mod report;
mod sharing;
mod sources;

use machine::TestMachine;
use report::{CheckReport, CheckResult, untried};
use std::io::{self, IsTerminal, Write, stdout};
use std::path::Path;
use std::process::ExitCode;
use topdown::{Options, TopDown};
use topdown_report::terminal::{Layout, Stream};
use topdown_report::{Output, clean, print};

/// Something that is assumed.
struct Assumption {
    name: &'static str,
    assumed: &'static str,
    /// Where in docs/kernel-facts.md, docs/kernel-facts-more.md or docs/error-bound.md.
    facts: &'static str,
    run: fn(&TestMachine) -> CheckResult,
}

const ASSUMPTIONS: &[Assumption] = &[
    Assumption {
        name: "control-page",
        assumed: "index 0x40000004 for SLOTS and 0x20000001 for each metric event, 48 bits, RDPMC granted; 0 when disabled",
        facts: "C.1",
        run: registers::pages,
    },
    Assumption {
        name: "reset-on-read",
        assumed: "read(2) of a running group zeroes the registers, and neither offset nor sequence number tells",
        facts: "B.3, C.2",
        run: registers::reset_on_read,
    },
    Assumption {
        name: "reset-while-off",
        assumed: "DISABLE, RESET, ENABLE leaves the old values in the registers; RESET while it runs zeroes them",
        facts: "B.5",
        run: registers::reset_while_off,
    },
    Assumption {
        name: "opened-enabled",
        assumed: "a group that is opened enabled loses what came before its first read(2)",
        facts: "B.6",
        run: registers::opened_enabled,
    },
    Assumption {
        name: "offset-rule",
        assumed: "the page's offset plus RDPMC is not the count",
        facts: "C.3",
        run: registers::offset_rule,
    },
    Assumption {
        name: "restored",
        assumed: "both registers come back as they were after context switches, whoever else counted meanwhile",
        facts: "B.4",
        run: registers::restored,
    },
    Assumption {
        name: "migrated",
        assumed: "both registers come along to another CPU and back",
        facts: "B.4",
        run: registers::migrated,
    },
    Assumption {
        name: "sequence",
        assumed: "the page's sequence number moves by six at each context switch",
        facts: "I",
        run: registers::sequence,
    },
    Assumption {
        name: "turns",
        assumed: "two groups in a thread take turns, with index 0 while out, and each finds its registers again",
        facts: "A.5, I",
        run: sharing::turns,
    },
    Assumption {
        name: "stale-registers",
        assumed: "a thread switched out right after a reset comes back to another's slots",
        facts: "I, a kernel hazard",
        run: sharing::stale,
    },
    Assumption {
        name: "whole",
        assumed: "the four fields of level 1 add up to 255",
        facts: "error-bound, what is assumed",
        run: fields::whole,
    },
    Assumption {
        name: "parts",
        assumed: "no field of level 2 is above its parent by more than a unit",
        facts: "error-bound, what is assumed",
        run: fields::parts,
    },
    Assumption {
        name: "overflow",
        assumed: "the registers do not go back within 2^35 slots",
        facts: "B.8; error-bound, what is assumed",
        run: fields::overflow,
    },
    Assumption {
        name: "edge",
        assumed: "no more than 320 slots pass between two RDPMC, one right after the other",
        facts: "error-bound, what is assumed",
        run: fields::edge,
    },
    Assumption {
        name: "costs",
        assumed: "td_read takes no more than five times the cycles of the two RDPMC alone",
        facts: "I, cost",
        run: costs::costs,
    },
    Assumption {
        name: "e-core",
        assumed: "on an E-core index is 0, and opening SLOTS is refused with ENOENT",
        facts: "A.3",
        run: registers::e_core,
    },
    Assumption {
        name: "duplicate-metric",
        assumed: "a metric event twice in a group is refused with EINVAL",
        facts: "A.4",
        run: registers::duplicate,
    },
    Assumption {
        name: "junk-level-2",
        assumed: "on a CPU of level 1 0x8400 opens all the same, as a general counter",
        facts: "A.4",
        run: registers::junk,
    },
];

const EMULATED: &str = "\n*** EMULATED: this is the emulated machine of c-tests/vm. It has neither pipeline nor caches: the shares below are \
                        those it was told, and nothing here says anything of silicon.";

/// Tries everything, and writes the report there, or to standard output. Exit status 0 if something held and nothing did
/// not.
///
/// # Errors
/// The report cannot be written.
pub fn run(to: Option<&Path>, json: bool) -> io::Result<ExitCode> {
    match to {
        None => match write_report(report_to_stdout(json)) {
            Err(error) => {
                Err(io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
            }
            Ok((_, status)) => Ok(status),
        },
        Some(path) => write_to(path, json),
    }
}

/// How many checks there are, where all can be tried.
const CHECKS: usize = 2 * bottlenecks::ALL.len() + ASSUMPTIONS.len();

fn report_to_stdout(json: bool) -> CheckReport<io::Stdout> {
    let report = CheckReport::new(stdout(), json).laid_out(Layout::of(Stream::Output));
    // (on a terminal checks are seen as they are done)
    if json || !stdout().is_terminal() { report.telling(CHECKS) } else { report }
}

fn write_to(path: &Path, json: bool) -> io::Result<ExitCode> {
    let mut output = Output::create(path)?;
    let (summary, status) = write_report(CheckReport::new(&mut output, json).telling(CHECKS))?;
    output.finish()?;
    print(&format!("{summary}; the report is in {}\n", clean(&path.display().to_string())))?;
    Ok(status)
}

fn write_report<W: Write>(mut report: CheckReport<W>) -> io::Result<(String, ExitCode)> {
    report.head(machine::describe())?;
    match ready() {
        Ok((machine, td)) => try_all(&mut report, machine.as_ref(), td)?,
        Err(why) => {
            report.line(&format!("\nNO PMU that can be used, so nothing is proved: {why}"))?;
            report.none_of(bottlenecks::ALL.len() + ASSUMPTIONS.len());
        }
    }
    let summary = report.end()?;
    Ok((summary, report.status()))
}

/// The machine, if its kernel shows the registers, and a handle on counters of either kind.
fn ready() -> Result<(Option<TestMachine>, TopDown), String> {
    let machine = TestMachine::find().transpose().map_err(|error| error.to_string())?;
    let td = TopDown::open(&Options::default()).map_err(|error| error.to_string())?;
    Ok((machine, td))
}

fn try_all<W: Write>(
    report: &mut CheckReport<W>,
    machine: Option<&TestMachine>,
    td: TopDown,
) -> io::Result<()> {
    let emulated = machine::is_emulated();
    if let Some(machine) = machine {
        report.line(&format!("on CPU      {}", machine.cpu))?;
    }
    if emulated {
        report.line(EMULATED)?;
    }
    for bottleneck in &bottlenecks::ALL {
        let assumed = format!("{}: {}", bottleneck.code, bottleneck.demand.text());
        report.check(bottleneck.name, &assumed, "", bottleneck.run(&td, emulated, bottleneck.mix))?;
    }
    if emulated {
        let assumed = "each of these is refused if its slots divide like another's";
        report.check("wrong-mix", assumed, "", bottlenecks::refuses(&td))?;
    }
    drop(td); // two groups in a thread would take turns
    try_sources(report, machine)?;
    let Some(machine) = machine else {
        report
            .line("\nwhat is assumed of registers could not be tried: the kernel shows no event 'slots'")?;
        report.none_of(ASSUMPTIONS.len());
        return Ok(());
    };
    for Assumption { name, assumed, facts, run } in ASSUMPTIONS {
        let tried = run(machine);
        // a check that failed on another CPU
        let tried = machine.return_home().map_or_else(|error| untried(error.to_string()), |()| tried);
        report.check(name, assumed, facts, tried)?;
    }
    Ok(())
}

/// What registers and general-purpose counters say of each microkernel.
fn try_sources<W: Write>(report: &mut CheckReport<W>, machine: Option<&TestMachine>) -> io::Result<()> {
    let assumed =
        "registers and general counters say the same of it, or differ by the slots that the core drops";
    let machine = match (sources::both(), machine) {
        (Ok(()), Some(machine)) => machine,
        (Ok(()), None) => return report.check("sources", assumed, "", untried("the machine is not known")),
        (Err(why), _) => return report.check("sources", assumed, "", Err(why)),
    };
    for bottleneck in &bottlenecks::ALL {
        let compared = sources::compare(bottleneck, machine);
        let tried = compared.as_ref().map_or_else(|why| untried(&why.0), sources::judge);
        report.check(&format!("sources-{}", bottleneck.name), assumed, "", tried)?;
        compared.into_iter().for_each(|compared| report.sources(compared));
    }
    Ok(())
}
