//! The functions of a profile by name.
#![forbid(unsafe_code)]

use crate::profile::{Profile, ProfiledFunction};
use std::collections::HashMap;

/// Core, name and module.
type Key<'p> = (usize, &'p str, &'p str);

pub(super) struct Index<'p>(HashMap<Key<'p>, &'p ProfiledFunction>);

impl<'p> Index<'p> {
    pub fn new(profile: &'p Profile) -> Index<'p> {
        let key = |f: &'p ProfiledFunction| (f.core, f.name.as_str(), f.module.as_str());
        Index(profile.functions.iter().map(|function| (key(function), function)).collect())
    }

    /// That of a stack's frame.
    pub fn find(&self, core: usize, (name, module): &'p (String, String)) -> Option<&'p ProfiledFunction> {
        self.0.get(&(core, name.as_str(), module.as_str())).copied()
    }
}
