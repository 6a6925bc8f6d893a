//! Tests of the whole storage on the model of brokers.

mod apart;
mod conformance;
mod histories;
mod node;
mod owning;
mod statements;
mod topics;
mod verdicts;
