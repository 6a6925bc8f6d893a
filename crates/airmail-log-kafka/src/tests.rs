//! Tests of the whole storage on the model of brokers.

mod conformance;
mod histories;
mod late;
mod node;
mod statements;
mod topics;
mod verdicts;
