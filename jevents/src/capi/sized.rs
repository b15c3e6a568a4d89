//! Functions that take a `struct perf_event_attr`, or a struct with one inside, exported once for each size of it.
//!
//! The struct grows with the kernel's headers, and a program is compiled with one size. The plain name is for 128 bytes,
//! which Linux 5.14 to 6.2 have, and for callers without our headers; these declare, for another size, the function
//! `jevents_attrSIZE_NAME` by the name NAME (JEVENTS_SYMBOL in jevents.h).

use super::{events, session};
use crate::Attr;
use crate::extra::Extra;
use crate::session::EventList;
use crate::session::layout::RawEvent;
use crate::session::print::SessionPrint;
use libc::{FILE, c_char, c_int, pid_t};

macro_rules! exported {
    ($($module:ident::$name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        exported!(@ 128, stringify!($name), $module::$name($($argument: $type),*) $(-> $result)?);
        exported!(@ 112, concat!("jevents_attr112_", stringify!($name)), $module::$name($($argument: $type),*) $(-> $result)?);
        exported!(@ 120, concat!("jevents_attr120_", stringify!($name)), $module::$name($($argument: $type),*) $(-> $result)?);
        exported!(@ 136, concat!("jevents_attr136_", stringify!($name)), $module::$name($($argument: $type),*) $(-> $result)?);
        exported!(@ 144, concat!("jevents_attr144_", stringify!($name)), $module::$name($($argument: $type),*) $(-> $result)?);
        exported!(@ 152, concat!("jevents_attr152_", stringify!($name)), $module::$name($($argument: $type),*) $(-> $result)?);
        exported!(@ 160, concat!("jevents_attr160_", stringify!($name)), $module::$name($($argument: $type),*) $(-> $result)?);
    )*};
    (@ $size:literal, $symbol:expr, $module:ident::$name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn exported($($argument: $type),*) $(-> $result)? {
                // SAFETY: the caller's word, as the header says it.
                unsafe { $module::$name($size, $($argument),*) }
            }
        };
    };
}

exported! {
    events::resolve_event(name: *const c_char, attr: *mut Attr) -> c_int;
    events::resolve_event_extra(name: *const c_char, attr: *mut Attr, extra: *mut Extra) -> c_int;
    events::jevent_name_to_attr(name: *const c_char, attr: *mut Attr) -> c_int;
    events::jevent_name_to_attr_extra(name: *const c_char, attr: *mut Attr, extra: *mut Extra) -> c_int;
    session::parse_events(el: *mut EventList, events: *const c_char) -> c_int;
    session::setup_events(el: *mut EventList, measure_all: bool, measure_pid: pid_t) -> c_int;
    session::setup_events_cpumask(el: *mut EventList, measure_pid: pid_t, cpumask: *const c_char, flags: c_int) -> c_int;
    session::setup_event(e: *mut RawEvent, cpu: c_int, leader: *mut RawEvent, measure_all: bool, measure_pid: pid_t) -> c_int;
    session::setup_event_flags(e: *mut RawEvent, cpu: c_int, leader: *mut RawEvent, measure_pid: pid_t, flags: c_int) -> c_int;
    session::read_event(e: *mut RawEvent, cpu: c_int) -> c_int;
    session::read_all_events(el: *mut EventList) -> c_int;
    session::event_scaled_value(e: *mut RawEvent, cpu: c_int) -> u64;
    session::event_scaled_value_sum(e: *mut RawEvent, cpu: c_int) -> u64;
    session::free_eventlist(el: *mut EventList);
    session::print_event_list_attr(el: *mut EventList, f: *mut FILE);
    session::session_print_csv(outfh: *mut FILE, el: *mut EventList, arg: *const SessionPrint);
    session::session_print_aggr(outfh: *mut FILE, el: *mut EventList, arg: *const SessionPrint);
    session::session_print(outfh: *mut FILE, el: *mut EventList, arg: *const SessionPrint);
}
