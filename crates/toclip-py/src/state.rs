//! State behind a lock, which can be written as JSON.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::convert::refuse;

/// What an object of Python has learnt so far.
#[derive(Debug)]
pub struct State<T>(Mutex<T>);

impl<T> State<T> {
    pub fn new(state: T) -> Self {
        State(Mutex::new(state))
    }

    /// Takes over the state of another.
    pub fn replace(&self, other: State<T>) {
        *self.lock() = other.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Serialize + DeserializeOwned> State<T> {
    pub fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&*self.lock()).map_err(refuse)
    }

    /// Reads what `to_json` wrote; `owner` is what the state belongs to, in an error.
    pub fn from_json(owner: &str, json: &str) -> PyResult<Self> {
        serde_json::from_str(json)
            .map(State::new)
            .map_err(|_| refuse(format!("this is not the state of {owner}, as to_json returns it")))
    }
}

impl<T: Clone + PartialEq> PartialEq for State<T> {
    fn eq(&self, other: &Self) -> bool {
        // A copy, so that two locks are never held at once.
        let other = other.lock().clone();
        *self.lock() == other
    }
}
