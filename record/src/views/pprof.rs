//! The protocol buffer of pprof (profile.proto). Values of a stack are CPU time, and of each node of level 1 the part of it in
//! which slots were such, as the shares of the innermost function are; where they cannot be told it is in `unknown`. Addresses are
//! not in it.
#![forbid(unsafe_code)]

use super::parts::Parts;
use super::remarks;
use crate::profile::{Profile, StackFrame};
use std::collections::HashMap;
use topdown_report::proto::ProtoMessage;

/// Field numbers of profile.proto.
mod tag {
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLE: u32 = 2;
    pub const MAPPING: u32 = 3;
    pub const LOCATION: u32 = 4;
    pub const FUNCTION: u32 = 5;
    pub const STRING_TABLE: u32 = 6;
    pub const DURATION_NANOS: u32 = 10;
    pub const COMMENT: u32 = 13;
    pub const DEFAULT_SAMPLE_TYPE: u32 = 14;
    pub const VALUE_TYPE: (u32, u32) = (1, 2); // type, unit
    pub const OF_SAMPLE: (u32, u32) = (1, 2); // location_id, value
    pub const OF_MAPPING: (u32, u32) = (1, 5); // id, filename
    pub const HAS: [u32; 4] = [7, 8, 9, 10]; // functions, filenames, line_numbers, inline_frames
    pub const OF_LOCATION: (u32, u32, u32) = (1, 2, 4); // id, mapping_id, line
    pub const OF_LINE: (u32, u32) = (1, 2); // function_id, line
    pub const OF_FUNCTION: (u32, u32, u32, u32) = (1, 2, 3, 4); // id, name, system_name, filename
}

/// A message under way, with what is in its tables.
#[derive(Default)]
struct Tables {
    message: ProtoMessage,
    strings: HashMap<String, u64>,
    mappings: HashMap<String, u64>,
    /// By name, module and source file.
    functions: HashMap<(String, String, String), u64>,
    /// By functions and lines.
    locations: HashMap<Vec<(u64, u64)>, u64>,
}

impl Tables {
    fn string(&mut self, text: &str) -> u64 {
        if let Some(number) = self.strings.get(text) {
            return *number;
        }
        let number = self.strings.len() as u64;
        self.message.push(tag::STRING_TABLE, text);
        self.strings.insert(text.to_string(), number);
        number
    }

    fn value_type(&mut self, kind: &str, unit: &str) {
        let (kind, unit) = (self.string(kind), self.string(unit));
        let value = ProtoMessage::default().number(tag::VALUE_TYPE.0, kind).number(tag::VALUE_TYPE.1, unit);
        self.message.push(tag::SAMPLE_TYPE, value);
    }

    fn mapping(&mut self, file: &str) -> u64 {
        if let Some(id) = self.mappings.get(file) {
            return *id;
        }
        let (id, name) = (self.mappings.len() as u64 + 1, self.string(file));
        let (of_id, of_name) = tag::OF_MAPPING;
        let mapping = ProtoMessage::default().number(of_id, id).number(of_name, name);
        // (readers need not look for what is not known, and have no addresses to look with)
        let mapping = tag::HAS.iter().fold(mapping, |mapping, has| mapping.number(*has, 1));
        self.message.push(tag::MAPPING, mapping);
        self.mappings.insert(file.to_string(), id);
        id
    }

    fn function(&mut self, (name, module): &(String, String), file: &str) -> u64 {
        let key = (name.clone(), module.clone(), file.to_string());
        if let Some(id) = self.functions.get(&key) {
            return *id;
        }
        let (id, name, file) = (self.functions.len() as u64 + 1, self.string(name), self.string(file));
        let (of_id, of_name, system_name, filename) = tag::OF_FUNCTION;
        let function = ProtoMessage::default().number(of_id, id).number(of_name, name);
        self.message.push(tag::FUNCTION, function.number(system_name, name).number(filename, file));
        self.functions.insert(key, id);
        id
    }

    /// That of a function, and of those that are inlined there, the innermost first.
    fn location(&mut self, frames: &[&StackFrame]) -> u64 {
        let line = |frame: &&StackFrame| {
            let (file, line) =
                frame.line.as_ref().map_or(("", 0), |line| (&*line.file, u64::from(line.line)));
            (self.function(&frame.function, file), line)
        };
        let lines: Vec<(u64, u64)> = frames.iter().map(line).collect();
        if let Some(id) = self.locations.get(&lines) {
            return *id;
        }
        let id = self.locations.len() as u64 + 1;
        let mapping = frames.last().map_or(0, |frame| self.mapping(&frame.function.1));
        let (of_id, of_mapping, of_line) = tag::OF_LOCATION;
        let mut location = ProtoMessage::default().number(of_id, id).number(of_mapping, mapping);
        for (function, line) in &lines {
            let (function_id, number) = tag::OF_LINE;
            let line = ProtoMessage::default().number(function_id, *function).number(number, *line);
            location.push(of_line, line);
        }
        self.message.push(tag::LOCATION, location);
        self.locations.insert(lines, id);
        id
    }
}

pub(super) fn pprof(profile: &Profile, command: &str) -> Vec<u8> {
    let mut tables = Tables::default();
    tables.string(""); // the first, as the format has it
    let parts = Parts::new(profile);
    // (of a condition, what its event counted)
    let (kind, unit) = profile.event().map_or(("cpu", "nanoseconds"), |held| (&*held.event, "count"));
    tables.value_type(kind, unit);
    parts.names.iter().for_each(|name| tables.value_type(name, unit));
    if parts.has_unknown() {
        tables.value_type("unknown", unit);
    }
    for (stack, ns) in &profile.stacks {
        let frames: Vec<&StackFrame> = stack.frames.iter().rev().collect();
        let locations = frames.split_inclusive(|frame| !frame.inlined);
        let locations: Vec<u64> = locations.map(|frames| tables.location(frames)).collect();
        let values: Vec<u64> = parts.of(stack, *ns).into_iter().map(|value| value as u64).collect();
        let sample =
            ProtoMessage::default().numbers(tag::OF_SAMPLE.0, &locations).numbers(tag::OF_SAMPLE.1, &values);
        tables.message.push(tag::SAMPLE, sample);
    }
    let remarks = remarks::of_all(profile);
    let comments: Vec<u64> = [command]
        .into_iter()
        .chain(remarks.iter().map(|remark| &**remark))
        .map(|text| tables.string(text))
        .collect();
    let cpu = tables.string(kind);
    let message = tables.message.number(tag::DURATION_NANOS, profile.elapsed.as_nanos() as u64);
    message.numbers(tag::COMMENT, &comments).number(tag::DEFAULT_SAMPLE_TYPE, cpu).bytes()
}
