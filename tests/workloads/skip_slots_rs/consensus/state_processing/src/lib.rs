//! From one slot to the next.

pub mod per_epoch_processing;
pub mod per_slot_processing;
pub mod state_advance;

/// What can go wrong on the way.
#[derive(Debug)]
pub enum Error {
    State(types::Error),
    Arithmetic(safe_arith::ArithError),
    TargetInThePast,
}

impl From<types::Error> for Error {
    fn from(error: types::Error) -> Self {
        Self::State(error)
    }
}

impl From<safe_arith::ArithError> for Error {
    fn from(error: safe_arith::ArithError) -> Self {
        Self::Arithmetic(error)
    }
}

/// An error of a milhouse list is an error of the state.
pub(crate) fn list_error(error: impl Into<types::Error>) -> Error {
    Error::State(error.into())
}
