//! Tests of the whole storage on the model of brokers.

mod apart;
mod conformance;
mod histories;
mod late;
mod node;
mod owning;
mod soundness;
mod statements;
mod topics;
mod upkeep;
mod verdicts;
