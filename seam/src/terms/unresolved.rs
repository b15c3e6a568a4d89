//! Why a name does not resolve. Programs try names until one fails (instances of a PMU, say): that a name is unknown is
//! no news, and nothing is said of it; what is wrong with a known one is.

/// A reason, where there is one to tell.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Unresolved(Option<String>);

impl Unresolved {
    /// No such name.
    pub const UNKNOWN: Self = Unresolved(None);

    /// To be told.
    pub fn because(reason: impl Into<String>) -> Self {
        Unresolved(Some(reason.into()))
    }

    /// What is to be told of two attempts: the first that got somewhere.
    pub fn or(self, later: Self) -> Self {
        Unresolved(self.0.or(later.0))
    }

    /// The text, if any.
    pub fn reason(&self) -> Option<&str> {
        self.0.as_deref()
    }
}
