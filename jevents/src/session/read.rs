//! Reading what was counted.

use super::layout::{Efd, Event, List};
use super::open::descriptor;
use crate::say::{reason, say};
use std::io;

/// `read_event`: value and times of one CPU into its `Efd`. Err: errno says why, and a line on standard error.
///
/// A descriptor that the program opened without times gives fewer numbers than three: the others are 0. One that gives
/// none (a pinned event for which there was no room) is an error, since old numbers would pass for new ones.
pub fn read_event(event: Event, cpu: usize) -> Result<(), ()> {
    let mut val = [0u64; 3];
    let fd = descriptor(event, cpu).unwrap_or(-1);
    // SAFETY: the buffer has that size.
    let bytes = unsafe { libc::read(fd, val.as_mut_ptr().cast(), size_of_val(&val)) };
    let reason = match bytes {
        ..0 => reason(&io::Error::last_os_error()),
        0..8 => "it no longer counts".into(),
        _ => {
            event.efd(cpu).val = val;
            return Ok(());
        }
    };
    say!("Error reading from {}/{cpu}: {reason}", event.text());
    Err(())
}

/// `read_all_events`: all that are open, up to the first error.
pub fn read_all_events(list: List) -> Result<(), ()> {
    for event in list.events() {
        let open: Vec<usize> = (0..list.cpus()).filter(|&cpu| descriptor(event, cpu).is_some()).collect();
        open.iter().try_for_each(|&cpu| read_event(event, cpu))?;
        let of_process = open.into_iter().map(|cpu| event.efd(cpu)).filter(|efd| efd.of_process != 0);
        share_time(&mut of_process.collect::<Vec<_>>());
    }
    Ok(())
}

/// A process's event is open on each CPU, and enabled on all of them while the process runs on one. So each CPU gets the
/// part of the time enabled that it has of the time running: what was on one CPU after the other was counted all the
/// time, and what was multiplexed is scaled once, not once a CPU.
fn share_time(cpus: &mut [&mut Efd]) {
    let ran: u128 = cpus.iter().map(|efd| u128::from(efd.val[2])).sum();
    for [_, enabled, running] in cpus.iter_mut().map(|efd| &mut efd.val).filter(|_| ran > 0) {
        let part = u128::from(*enabled) * u128::from(*running) / ran;
        *enabled = part.max(u128::from(*running)).try_into().unwrap_or(u64::MAX);
    }
}

/// What would have been counted, had the event been on the PMU all the time that it was enabled.
pub fn scaled(efd: &Efd) -> u64 {
    let [value, enabled, running] = efd.val;
    if enabled == running || running == 0 {
        return value;
    }
    let scaled = u128::from(value) * u128::from(enabled) / u128::from(running);
    scaled.try_into().unwrap_or(u64::MAX)
}

/// `event_scaled_value_sum`: of an event and its clones, which follow it.
pub fn scaled_sum(event: Event, cpu: usize) -> u64 {
    let own = scaled(event.efd(cpu));
    if event.num_clones() <= 0 {
        return own;
    }
    let clones = event.and_later().filter(|later| later.orig() == Some(event));
    clones.fold(own, |sum, clone| sum.saturating_add(scaled(clone.efd(cpu))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_scaled_by_the_time_on_the_pmu() {
        let value = |val| scaled(&Efd { fd: 3, of_process: 0, val });
        assert_eq!(value([100, 50, 50]), 100);
        assert_eq!(value([100, 50, 25]), 200);
        assert_eq!(value([100, 50, 0]), 100, "never on the PMU");
        assert_eq!(value([7, 0, 0]), 7);
        assert_eq!(value([100, 25, 50]), 50);
        assert_eq!(value([1 << 62, 3, 2]), 3 << 61, "no bit is lost");
        assert_eq!(value([(1 << 60) + 1, 1 << 40, 1 << 39]), (1 << 61) + 2);
        assert_eq!(value([u64::MAX, u64::MAX, 1]), u64::MAX);
    }

    #[test]
    fn a_process_is_enabled_once_wherever_it_runs() {
        let shared = |vals: [[u64; 3]; 3]| {
            let mut efds = vals.map(|val| Efd { fd: 3, of_process: 1, val });
            share_time(&mut efds.iter_mut().collect::<Vec<_>>());
            (efds.map(|efd| efd.val[1]), efds.iter().map(scaled).sum::<u64>())
        };
        assert_eq!(shared([[60, 100, 60], [40, 100, 40], [0, 100, 0]]), ([60, 40, 0], 100));
        assert_eq!(
            shared([[60, 99, 60], [40, 99, 40], [0, 9, 0]]),
            ([60, 40, 0], 100),
            "read one after the other"
        );
        assert_eq!(
            shared([[60, 200, 60], [40, 200, 40], [0, 200, 0]]),
            ([120, 80, 0], 200),
            "half of the time"
        );
        assert_eq!(shared([[0, 100, 0]; 3]), ([100; 3], 0), "none of the time");
        assert_eq!(shared([[1, u64::MAX, u64::MAX]; 3]).0, [u64::MAX; 3]);
    }

    #[test]
    fn clones_are_summed_from_wherever_the_original_is() {
        let [original, other, first, second] = [0; 4].map(|_| Event::new(136, 2).unwrap());
        [other, first, second].iter().fold(original, |last, &event| {
            last.set_next(Some(event));
            event
        });
        [first, second].iter().for_each(|clone| clone.set_orig(original));
        for (event, value) in [(original, 1), (other, 10), (first, 100), (second, 1000)] {
            event.efd(1).val = [value, 4, 2];
        }
        assert_eq!([original, other, first].map(|event| scaled_sum(event, 1)), [2 * 1101, 20, 200]);
        assert_eq!(scaled_sum(original, 0), 0);
        [original, other, first, second].into_iter().for_each(Event::free);
    }
}
