//! The functions of a profile by name.
#![forbid(unsafe_code)]

use crate::profile::{Profile, ProfiledFunction};
use std::collections::HashMap;

/// Core, name and module.
type FunctionKey<'p> = (usize, &'p str, &'p str);

pub(super) struct FunctionIndex<'p>(HashMap<FunctionKey<'p>, &'p ProfiledFunction>);

impl<'p> FunctionIndex<'p> {
    pub fn new(profile: &'p Profile) -> FunctionIndex<'p> {
        let key = |f: &'p ProfiledFunction| (f.core, f.name.as_str(), f.module.as_str());
        FunctionIndex(profile.functions.iter().map(|function| (key(function), function)).collect())
    }

    /// That of a stack's frame.
    pub fn find(&self, core: usize, (name, module): &'p (String, String)) -> Option<&'p ProfiledFunction> {
        self.0.get(&(core, name.as_str(), module.as_str())).copied()
    }
}
