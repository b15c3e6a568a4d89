//! The tables that threads share: strings, libraries, functions, frames and stacks.
#![forbid(unsafe_code)]

use crate::profile::{CallStack, Profile, StackFrame};
use crate::symbols::SourceLine;
use crate::views::flame::dominant;
use crate::views::parts::Parts;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use topdown::LEVEL_1;

/// The place of the last category.
const CANNOT_BE_TOLD: usize = LEVEL_1.len();
/// The type of a resource that is a program or library.
const LIBRARY: u32 = 1;

/// A table of the format: an object of columns. Rows are numbered from 0.
pub(super) struct ColumnTable<const N: usize> {
    columns: [&'static str; N],
    rows: Vec<[Value; N]>,
}

impl<const N: usize> ColumnTable<N> {
    pub fn new(columns: [&'static str; N]) -> ColumnTable<N> {
        ColumnTable { columns, rows: Vec::new() }
    }

    pub fn push(&mut self, row: [Value; N]) -> usize {
        self.rows.push(row);
        self.rows.len() - 1
    }

    pub fn object(&self) -> Value {
        let column = |k: usize| self.rows.iter().map(|row| row[k].clone()).collect::<Vec<_>>();
        let columns = self.columns.iter().enumerate().map(|(k, name)| (name.to_string(), json!(column(k))));
        let length = ("length".to_string(), json!(self.rows.len()));
        Value::Object(columns.chain([length]).collect::<Map<_, _>>())
    }
}

/// Name and module of a function, or the name of a kind of core.
type FrameName<'p> = (&'p str, &'p str);

/// The source file of each function on each kind of core.
fn source_files(profile: &Profile) -> HashMap<(usize, FrameName<'_>), &str> {
    let mut all: HashMap<(usize, FrameName), BTreeMap<&str, u64>> = HashMap::new();
    for (stack, ns) in &profile.stacks {
        for frame in &stack.frames {
            if let Some(line) = &frame.line {
                let function = (stack.core, frame_name(frame));
                *all.entry(function).or_default().entry(&line.file).or_default() += ns;
            }
        }
    }
    let most = |files: BTreeMap<_, u64>| files.into_iter().max_by_key(|(_, ns)| *ns).map(|(file, _)| file);
    all.into_iter().filter_map(|(function, files)| Some((function, most(files)?))).collect()
}

fn frame_name(frame: &StackFrame) -> FrameName<'_> {
    (&frame.function.0, &frame.function.1)
}

/// What threads share.
pub(super) struct SharedTables<'p> {
    files: HashMap<(usize, FrameName<'p>), &'p str>,
    strings: Vec<&'p str>,
    string_numbers: HashMap<&'p str, usize>,
    libraries: Vec<&'p str>,
    resources: ColumnTable<4>,
    sources: ColumnTable<2>,
    source_numbers: HashMap<&'p str, usize>,
    functions: ColumnTable<7>,
    frames: ColumnTable<9>,
    stacks: ColumnTable<2>,
    /// Of functions by kind of core.
    function_numbers: HashMap<(usize, FrameName<'p>), usize>,
    /// Of functions by number, and lines.
    frame_numbers: HashMap<(usize, Option<u32>), usize>,
    stack_numbers: HashMap<(usize, Option<usize>), usize>,
}

impl<'p> SharedTables<'p> {
    pub fn new(profile: &'p Profile) -> SharedTables<'p> {
        SharedTables {
            files: source_files(profile),
            strings: Vec::new(),
            string_numbers: HashMap::new(),
            libraries: Vec::new(),
            resources: ColumnTable::new(["lib", "name", "host", "type"]),
            sources: ColumnTable::new(["uuid", "filename"]),
            source_numbers: HashMap::new(),
            functions: ColumnTable::new([
                "name",
                "isJS",
                "relevantForJS",
                "resource",
                "source",
                "lineNumber",
                "columnNumber",
            ]),
            frames: ColumnTable::new([
                "address",
                "inlineDepth",
                "category",
                "subcategory",
                "func",
                "nativeSymbol",
                "innerWindowID",
                "line",
                "column",
            ]),
            stacks: ColumnTable::new(["frame", "prefix"]),
            function_numbers: HashMap::new(),
            frame_numbers: HashMap::new(),
            stack_numbers: HashMap::new(),
        }
    }

    fn string(&mut self, text: &'p str) -> usize {
        *self.string_numbers.entry(text).or_insert_with(|| {
            self.strings.push(text);
            self.strings.len() - 1
        })
    }

    /// A resource for each library; -1: none.
    fn resource(&mut self, module: &'p str) -> Value {
        if module.is_empty() {
            return json!(-1);
        }
        let known = self.libraries.iter().position(|library| *library == module);
        let place = known.unwrap_or_else(|| {
            self.libraries.push(module);
            let (library, name) = (self.libraries.len() - 1, self.string(module));
            self.resources.push([json!(library), json!(name), Value::Null, json!(LIBRARY)])
        });
        json!(place)
    }

    /// The source file of a function, if it has one.
    fn source(&mut self, file: Option<&'p str>) -> Value {
        let Some(file) = file else { return Value::Null };
        if let Some(number) = self.source_numbers.get(file) {
            return json!(number);
        }
        let name = self.string(file);
        let number = self.sources.push([Value::Null, json!(name)]);
        self.source_numbers.insert(file, number);
        json!(number)
    }

    fn function(&mut self, core: usize, of: FrameName<'p>) -> usize {
        if let Some(number) = self.function_numbers.get(&(core, of)) {
            return *number;
        }
        let (name, resource) = (self.string(of.0), self.resource(of.1));
        let source = self.source(self.files.get(&(core, of)).copied());
        let no = || Value::Null;
        let number =
            self.functions.push([json!(name), json!(false), json!(false), resource, source, no(), no()]);
        self.function_numbers.insert((core, of), number);
        number
    }

    fn frame(&mut self, core: usize, of: FrameName<'p>, line: Option<&SourceLine>, category: usize) -> usize {
        let line = line.filter(|line| self.files.get(&(core, of)) == Some(&&*line.file));
        let (function, line) = (self.function(core, of), line.map(|line| line.line));
        if let Some(number) = self.frame_numbers.get(&(function, line)) {
            return *number;
        }
        let no = || Value::Null;
        let number = self.frames.push([
            json!(-1),
            json!(0),
            json!(category),
            json!(0),
            json!(function),
            no(),
            no(),
            json!(line),
            no(),
        ]);
        self.frame_numbers.insert((function, line), number);
        number
    }

    fn stack(&mut self, frame: usize, prefix: Option<usize>) -> usize {
        let stacks = &mut self.stacks;
        *self
            .stack_numbers
            .entry((frame, prefix))
            .or_insert_with(|| stacks.push([json!(frame), json!(prefix)]))
    }

    /// The kind of core, and the functions from the outermost on.
    pub fn call_stack(&mut self, parts: &Parts<'p>, profile: &'p Profile, stack: &'p CallStack) -> usize {
        let core = &profile.cores[stack.core];
        let category = |figures| dominant(core, figures).map_or(CANNOT_BE_TOLD, |(place, _)| place);
        let root = self.frame(stack.core, (core.name, ""), None, category(&core.all));
        let mut number = self.stack(root, None);
        for frame in &stack.frames {
            let found = parts.index.find(stack.core, &frame.function);
            let category = found.map_or(CANNOT_BE_TOLD, |found| category(&found.own));
            let frame = self.frame(stack.core, frame_name(frame), frame.line.as_ref(), category);
            number = self.stack(frame, Some(number));
        }
        number
    }

    pub fn object(&self) -> Value {
        json!({
            "stackTable": self.stacks.object(),
            "frameTable": self.frames.object(),
            "funcTable": self.functions.object(),
            "resourceTable": self.resources.object(),
            "nativeSymbols": ColumnTable::new(["libIndex", "address", "name", "functionSize"]).object(),
            "sources": self.sources.object(),
            "stringArray": self.strings,
        })
    }

    pub fn libraries(&self) -> Value {
        let library = |name: &&str| {
            json!({
                "arch": "", "name": name, "path": name, "debugName": name, "debugPath": name, "breakpadId": "", "codeId": null
            })
        };
        self.libraries.iter().map(library).collect()
    }
}
