//! Bugs that can be planted, to see that the simulator finds them.

use crate::Stage;
use airmail_broker::sabotage::Bug as BrokerBug;
use airmail_client::sabotage::Bug as ClientBug;
use airmail_link::sabotage::{Bug as LinkBug, TreeBug};
use airmail_log::sabotage::Bug as LogBug;
use airmail_log_kafka::sabotage::Bug as KafkaBug;
use clap::ValueEnum;
use std::fmt;

/// A bug to plant. Each is a mistake that is easily made, and that no user may ever meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Plant {
    /// The disk says that a sync is done, and has not done it.
    AckBeforeSync,
    /// A delivery's range is taken to begin one number later than it does.
    RangeOffByOne,
    /// A producer's batch that leaves numbers out is taken for the next one.
    ProducerGreaterIsNext,
    /// A process looks at its lock when it starts, and never again.
    LockNotLookedAtAgain,
    /// [`LogBug::GapTooLong`].
    GapTooLong,
    /// [`LogBug::SeenBeforeSync`].
    SeenBeforeSync,
    /// [`LogBug::ProducersForgotten`].
    ProducersForgotten,
    /// [`LogBug::IndexMissesOne`].
    IndexMissesOne,
    /// [`LogBug::BlockGoneEarly`].
    BlockGoneEarly,
    /// [`LogBug::NumbersReused`].
    NumbersReused,
    /// [`LogBug::SealForgotten`].
    SealForgotten,
    /// [`LogBug::DeleteForgotten`].
    DeleteForgotten,
    /// [`LogBug::OlderSpecObeyed`].
    OlderSpecObeyed,
    /// [`LogBug::JumpBelieved`].
    JumpBelieved,
    /// [`BrokerBug::DetachOffByOne`].
    DetachOffByOne,
    /// [`BrokerBug::LateNotCharged`].
    LateNotCharged,
    /// [`BrokerBug::CreditLost`].
    CreditLost,
    /// [`BrokerBug::PositionBeyondEnd`].
    PositionBeyondEnd,
    /// [`BrokerBug::FollowingKept`].
    FollowingKept,
    /// [`BrokerBug::MemberKept`].
    MemberKept,
    /// [`BrokerBug::NumberFreed`].
    NumberFreed,
    /// [`BrokerBug::SilentReaderCounts`].
    SilentReaderCounts,
    /// [`BrokerBug::LiveBeforeEffective`].
    LiveBeforeEffective,
    /// [`BrokerBug::WantedUntilDropped`].
    WantedUntilDropped,
    /// [`BrokerBug::EndNotAsked`].
    EndNotAsked,
    /// [`BrokerBug::VoidEndsCommands`].
    VoidEndsCommands,
    /// [`BrokerBug::UnknownWithdrawn`].
    UnknownWithdrawn,
    /// [`BrokerBug::ProvisionsForgotten`].
    ProvisionsForgotten,
    /// [`BrokerBug::UnknownRefused`].
    UnknownRefused,
    /// [`BrokerBug::FirstTimeEnds`].
    FirstTimeEnds,
    /// [`BrokerBug::EarlierEndTaken`].
    EarlierEndTaken,
    /// [`BrokerBug::EndBeforeSealed`].
    EndBeforeSealed,
    /// [`BrokerBug::SealedNotAsked`].
    SealedNotAsked,
    /// [`BrokerBug::RetiredUnemptied`].
    RetiredUnemptied,
    /// [`BrokerBug::TakenBeforeSealed`].
    TakenBeforeSealed,
    /// [`BrokerBug::OwnClock`].
    OwnClock,
    /// [`BrokerBug::ClockFromBelow`].
    ClockFromBelow,
    /// [`BrokerBug::PartForOtherRoles`].
    PartForOtherRoles,
    /// [`BrokerBug::LateForbidden`].
    LateForbidden,
    /// [`BrokerBug::UnmatchedOfTopic`].
    UnmatchedOfTopic,
    /// [`BrokerBug::LateUnfiltered`].
    LateUnfiltered,
    /// [`BrokerBug::SelectionOfAll`].
    SelectionOfAll,
    /// [`BrokerBug::LateUnselected`].
    LateUnselected,
    /// [`BrokerBug::SelectionOfWanted`].
    SelectionOfWanted,
    /// [`ClientBug::OvertakenForgotten`].
    OvertakenForgotten,
    /// [`BrokerBug::NamedOnce`].
    NamedOnce,
    /// [`BrokerBug::TurnsOffByOne`].
    TurnsOffByOne,
    /// [`BrokerBug::HighFromLatest`].
    HighFromLatest,
    /// [`BrokerBug::LanesToldApart`].
    LanesToldApart,
    /// [`LinkBug::GenerationIgnored`].
    GenerationIgnored,
    /// [`LinkBug::ResumeOffByOne`].
    ResumeOffByOne,
    /// [`LinkBug::PreviousIgnored`].
    PreviousIgnored,
    /// [`LinkBug::RefusalTaken`].
    RefusalTaken,
    /// [`LinkBug::CreditTwice`].
    LinkCreditTwice,
    /// [`LinkBug::OpensForgotten`].
    OpensForgotten,
    /// [`LinkBug::ReaderForgotten`].
    ReaderForgotten,
    /// [`LinkBug::WantsKept`].
    WantsKept,
    /// [`LinkBug::StandbyNotTold`].
    StandbyNotTold,
    /// [`LinkBug::MoveUndoubted`].
    MoveUndoubted,
    /// [`LinkBug::StandbyCounts`].
    StandbyCounts,
    /// [`TreeBug::PathCheckedWhenAttaching`].
    PathCheckedWhenAttaching,
    /// [`TreeBug::CountNotRenewed`].
    CountNotRenewed,
    /// [`TreeBug::RedirectToOneThatLeft`].
    RedirectToOneThatLeft,
    /// [`KafkaBug::HoleLeftOut`].
    HoleLeftOut,
    /// [`KafkaBug::ReportRetriable`].
    ReportRetriable,
    /// [`KafkaBug::StragglerTaken`].
    StragglerTaken,
    /// [`KafkaBug::HomeWithoutTable`].
    HomeWithoutTable,
    /// [`KafkaBug::LowWatermarkTruncates`].
    LowWatermarkTruncates,
    /// [`KafkaBug::HoleIsRetention`].
    HoleIsRetention,
    /// [`KafkaBug::BirthNotRead`].
    BirthNotRead,
    /// [`KafkaBug::MissingTopicMade`].
    MissingTopicMade,
    /// [`KafkaBug::UnheardRemoved`].
    UnheardRemoved,
    /// [`KafkaBug::CachedEnd`].
    CachedEnd,
    /// [`KafkaBug::StatementTrusted`].
    StatementTrusted,
    /// [`KafkaBug::ForgottenByTimer`].
    ForgottenByTimer,
    /// [`KafkaBug::SoleAfterAMove`].
    SoleAfterAMove,
    /// [`ClientBug::MemoryKept`].
    MemoryKept,
    /// [`ClientBug::EndedStaysLive`].
    EndedStaysLive,
    /// [`ClientBug::CreditTwice`].
    CreditTwice,
    /// [`ClientBug::NotJudgedAgain`].
    NotJudgedAgain,
}

impl Plant {
    /// Where it is sure to be found.
    #[must_use]
    pub const fn stage(self) -> Stage {
        match self {
            Plant::RangeOffByOne
            | Plant::DetachOffByOne
            | Plant::LateNotCharged
            | Plant::CreditLost
            | Plant::PositionBeyondEnd
            | Plant::FollowingKept
            | Plant::MemberKept
            | Plant::NumberFreed
            | Plant::EndBeforeSealed
            | Plant::SealedNotAsked
            | Plant::RetiredUnemptied
            | Plant::TakenBeforeSealed
            | Plant::MemoryKept
            | Plant::EndedStaysLive
            | Plant::CreditTwice
            | Plant::PartForOtherRoles
            | Plant::LateForbidden
            | Plant::UnmatchedOfTopic
            | Plant::LateUnfiltered
            | Plant::SelectionOfAll
            | Plant::LateUnselected
            | Plant::OvertakenForgotten
            | Plant::NamedOnce
            | Plant::TurnsOffByOne
            | Plant::HighFromLatest
            | Plant::LanesToldApart
            | Plant::NotJudgedAgain => Stage::World,
            Plant::SilentReaderCounts
            | Plant::LiveBeforeEffective
            | Plant::WantedUntilDropped
            | Plant::EndNotAsked
            | Plant::VoidEndsCommands
            | Plant::UnknownWithdrawn
            | Plant::ProvisionsForgotten
            | Plant::UnknownRefused
            | Plant::FirstTimeEnds
            | Plant::EarlierEndTaken
            | Plant::OwnClock
            | Plant::ClockFromBelow
            | Plant::SelectionOfWanted => Stage::Cluster,
            _ if self.in_kafka().is_some() => Stage::Kafka,
            _ if self.in_link().is_some() || self.in_tree().is_some() => Stage::Cluster,
            _ => Stage::Storage,
        }
    }

    /// Whether nothing but a move shows it: then every run that can have moves has them.
    #[must_use]
    pub const fn is_of_moves(self) -> bool {
        matches!(
            self,
            Plant::EndBeforeSealed
                | Plant::SealedNotAsked
                | Plant::RetiredUnemptied
                | Plant::TakenBeforeSealed
        )
    }

    /// Beginnings of the violation that finds the plant: a guarantee, or another invariant. A
    /// violation of a core's state is found by the core itself, at the step that breaks it.
    #[must_use]
    pub const fn breaks(self) -> &'static [&'static str] {
        match self {
            Plant::AckBeforeSync
            | Plant::LockNotLookedAtAgain
            | Plant::SeenBeforeSync
            | Plant::SealForgotten => &["G1"],
            Plant::ProducerGreaterIsNext | Plant::ProducersForgotten => &["G3"],
            Plant::NumbersReused => &["G4", "G3"],
            // Producers are forgotten by the same clock.
            Plant::JumpBelieved => &["G2", "G3"],
            Plant::LateNotCharged => &["G5"],
            Plant::CreditLost | Plant::SilentReaderCounts => &["liveness"],
            Plant::DeleteForgotten => &["contract"],
            // The catalog finds by itself that a part of log 0 is missing.
            Plant::ResumeOffByOne | Plant::PreviousIgnored => &["G2", "served: "],
            // A reader is told what is another one's: numbers, its end, or nothing more.
            Plant::GenerationIgnored => &["G2", "contract", "liveness"],
            Plant::EndNotAsked | Plant::FirstTimeEnds | Plant::EarlierEndTaken => &["G2"],
            Plant::RetiredUnemptied | Plant::TakenBeforeSealed => &["G2"],
            // Messages are skipped, or waited for where nobody gives them any more.
            Plant::EndBeforeSealed => &["G2", "liveness"],
            // A retry is stored again, or told that it is not.
            Plant::SealedNotAsked => &["G3", "G8"],
            // Messages are missing, or the client waits for them.
            Plant::LiveBeforeEffective
            | Plant::WantedUntilDropped
            | Plant::WantsKept
            | Plant::StandbyNotTold => &["G2", "liveness", "wanted: "],
            Plant::VoidEndsCommands | Plant::RefusalTaken | Plant::MoveUndoubted => &["G8"],
            // Logs that are never opened, or that were opened already.
            Plant::UnknownWithdrawn => &["liveness", "bug: withdrawn: "],
            Plant::ProvisionsForgotten => &["liveness"],
            // A publish is refused, or a subscription.
            Plant::UnknownRefused => &["G8", "G2"],
            Plant::LinkCreditTwice => &["G5"],
            Plant::OpensForgotten | Plant::ReaderForgotten | Plant::StandbyCounts => &["liveness"],
            Plant::PathCheckedWhenAttaching | Plant::RedirectToOneThatLeft => &["tree"],
            // Nobody keeps its place, so not everybody has one.
            Plant::CountNotRenewed => &["liveness"],
            // An ack of less durability, or records gone that were to be kept.
            Plant::OlderSpecObeyed => &["G1", "G2"],
            // A copy is given, or what is none is told as unused.
            Plant::HoleLeftOut | Plant::StragglerTaken | Plant::ForgottenByTimer => &[
                "G3 every node leaves out the same",
                "G2 a gap's reason is so",
                // And it was acknowledged.
                "G1 acknowledged means held",
            ],
            // Of log 0 the commands are missing, so that a namespace is missing too.
            Plant::HomeWithoutTable => &[
                "G3 every node leaves out the same",
                "G2",
                "G8 good input is taken: NAMESPACE_NOT_FOUND",
            ],
            // What was acknowledged, or refused, is another copy.
            Plant::ReportRetriable | Plant::SoleAfterAMove => &["G8", "G1"],
            // Whoever is the first to be told that a sound log has stopped.
            Plant::LowWatermarkTruncates | Plant::UnheardRemoved => &[
                "G8 a sound log is served",
                "G8 good input is taken: LOG_SUSPENDED",
                "G2 a good subscription holds",
            ],
            Plant::HoleIsRetention | Plant::CachedEnd => &["G2"],
            Plant::NamedOnce | Plant::TurnsOffByOne => &["G2"],
            // New data under old numbers: given, or acknowledged.
            Plant::BirthNotRead | Plant::StatementTrusted => &["G3", "G1", "G4"],
            Plant::MissingTopicMade => &["G4 no topic is made again"],
            Plant::OwnClock | Plant::ClockFromBelow | Plant::NotJudgedAgain => &["expiry: "],
            Plant::PartForOtherRoles => &["audience: ", "G2"],
            Plant::LateForbidden => &["audience: "],
            Plant::UnmatchedOfTopic | Plant::OvertakenForgotten => &["filters: ", "G2"],
            Plant::LateUnfiltered => &["filters: "],
            Plant::SelectionOfAll | Plant::LateUnselected => &["G2 only what was asked for"],
            Plant::SelectionOfWanted => &["G2", "liveness: "],
            Plant::FollowingKept => &["following: "],
            Plant::MemberKept => &["one_place: "],
            Plant::NumberFreed => &["numbers: "],
            Plant::MemoryKept => &["memory: "],
            Plant::EndedStaysLive => &["ranges: "],
            Plant::CreditTwice => &["credit: "],
            Plant::RangeOffByOne | Plant::GapTooLong | Plant::IndexMissesOne => &["G2"],
            Plant::BlockGoneEarly | Plant::DetachOffByOne => &["G2"],
            Plant::PositionBeyondEnd | Plant::LanesToldApart => &["G2"],
            Plant::HighFromLatest => &["G2"],
        }
    }

    /// The journal's own part.
    #[must_use]
    pub const fn in_log(self) -> Option<LogBug> {
        Some(match self {
            Plant::GapTooLong => LogBug::GapTooLong,
            Plant::SeenBeforeSync => LogBug::SeenBeforeSync,
            Plant::ProducersForgotten => LogBug::ProducersForgotten,
            Plant::IndexMissesOne => LogBug::IndexMissesOne,
            Plant::BlockGoneEarly => LogBug::BlockGoneEarly,
            Plant::NumbersReused => LogBug::NumbersReused,
            Plant::SealForgotten => LogBug::SealForgotten,
            Plant::DeleteForgotten => LogBug::DeleteForgotten,
            Plant::OlderSpecObeyed => LogBug::OlderSpecObeyed,
            Plant::JumpBelieved => LogBug::JumpBelieved,
            _ => return None,
        })
    }

    /// The shard's own part.
    #[must_use]
    pub const fn in_broker(self) -> Option<BrokerBug> {
        Some(match self {
            Plant::DetachOffByOne => BrokerBug::DetachOffByOne,
            Plant::LateNotCharged => BrokerBug::LateNotCharged,
            Plant::CreditLost => BrokerBug::CreditLost,
            Plant::PositionBeyondEnd => BrokerBug::PositionBeyondEnd,
            Plant::FollowingKept => BrokerBug::FollowingKept,
            Plant::MemberKept => BrokerBug::MemberKept,
            Plant::NumberFreed => BrokerBug::NumberFreed,
            Plant::SilentReaderCounts => BrokerBug::SilentReaderCounts,
            Plant::LiveBeforeEffective => BrokerBug::LiveBeforeEffective,
            Plant::WantedUntilDropped => BrokerBug::WantedUntilDropped,
            Plant::EndNotAsked => BrokerBug::EndNotAsked,
            Plant::VoidEndsCommands => BrokerBug::VoidEndsCommands,
            Plant::UnknownWithdrawn => BrokerBug::UnknownWithdrawn,
            Plant::ProvisionsForgotten => BrokerBug::ProvisionsForgotten,
            Plant::UnknownRefused => BrokerBug::UnknownRefused,
            Plant::FirstTimeEnds => BrokerBug::FirstTimeEnds,
            Plant::EarlierEndTaken => BrokerBug::EarlierEndTaken,
            Plant::EndBeforeSealed => BrokerBug::EndBeforeSealed,
            Plant::SealedNotAsked => BrokerBug::SealedNotAsked,
            Plant::RetiredUnemptied => BrokerBug::RetiredUnemptied,
            Plant::TakenBeforeSealed => BrokerBug::TakenBeforeSealed,
            Plant::OwnClock => BrokerBug::OwnClock,
            Plant::ClockFromBelow => BrokerBug::ClockFromBelow,
            Plant::PartForOtherRoles => BrokerBug::PartForOtherRoles,
            Plant::LateForbidden => BrokerBug::LateForbidden,
            Plant::UnmatchedOfTopic => BrokerBug::UnmatchedOfTopic,
            Plant::LateUnfiltered => BrokerBug::LateUnfiltered,
            Plant::SelectionOfAll => BrokerBug::SelectionOfAll,
            Plant::LateUnselected => BrokerBug::LateUnselected,
            Plant::SelectionOfWanted => BrokerBug::SelectionOfWanted,
            Plant::NamedOnce => BrokerBug::NamedOnce,
            Plant::TurnsOffByOne => BrokerBug::TurnsOffByOne,
            Plant::HighFromLatest => BrokerBug::HighFromLatest,
            Plant::LanesToldApart => BrokerBug::LanesToldApart,
            _ => return None,
        })
    }

    /// The link's own part.
    #[must_use]
    pub const fn in_link(self) -> Option<LinkBug> {
        Some(match self {
            Plant::GenerationIgnored => LinkBug::GenerationIgnored,
            Plant::ResumeOffByOne => LinkBug::ResumeOffByOne,
            Plant::PreviousIgnored => LinkBug::PreviousIgnored,
            Plant::RefusalTaken => LinkBug::RefusalTaken,
            Plant::LinkCreditTwice => LinkBug::CreditTwice,
            Plant::OpensForgotten => LinkBug::OpensForgotten,
            Plant::ReaderForgotten => LinkBug::ReaderForgotten,
            Plant::WantsKept => LinkBug::WantsKept,
            Plant::StandbyNotTold => LinkBug::StandbyNotTold,
            Plant::MoveUndoubted => LinkBug::MoveUndoubted,
            Plant::StandbyCounts => LinkBug::StandbyCounts,
            _ => return None,
        })
    }

    /// The part of a tree's nodes.
    #[must_use]
    pub const fn in_tree(self) -> Option<TreeBug> {
        Some(match self {
            Plant::PathCheckedWhenAttaching => TreeBug::PathCheckedWhenAttaching,
            Plant::CountNotRenewed => TreeBug::CountNotRenewed,
            Plant::RedirectToOneThatLeft => TreeBug::RedirectToOneThatLeft,
            _ => return None,
        })
    }

    /// The part of the storage on Kafka.
    #[must_use]
    pub const fn in_kafka(self) -> Option<KafkaBug> {
        Some(match self {
            Plant::HoleLeftOut => KafkaBug::HoleLeftOut,
            Plant::ReportRetriable => KafkaBug::ReportRetriable,
            Plant::StragglerTaken => KafkaBug::StragglerTaken,
            Plant::HomeWithoutTable => KafkaBug::HomeWithoutTable,
            Plant::LowWatermarkTruncates => KafkaBug::LowWatermarkTruncates,
            Plant::HoleIsRetention => KafkaBug::HoleIsRetention,
            Plant::BirthNotRead => KafkaBug::BirthNotRead,
            Plant::MissingTopicMade => KafkaBug::MissingTopicMade,
            Plant::UnheardRemoved => KafkaBug::UnheardRemoved,
            Plant::CachedEnd => KafkaBug::CachedEnd,
            Plant::StatementTrusted => KafkaBug::StatementTrusted,
            Plant::ForgottenByTimer => KafkaBug::ForgottenByTimer,
            Plant::SoleAfterAMove => KafkaBug::SoleAfterAMove,
            _ => return None,
        })
    }

    /// The client's own part.
    #[must_use]
    pub const fn in_client(self) -> Option<ClientBug> {
        Some(match self {
            Plant::MemoryKept => ClientBug::MemoryKept,
            Plant::EndedStaysLive => ClientBug::EndedStaysLive,
            Plant::CreditTwice => ClientBug::CreditTwice,
            Plant::NotJudgedAgain => ClientBug::NotJudgedAgain,
            Plant::OvertakenForgotten => ClientBug::OvertakenForgotten,
            _ => return None,
        })
    }

    /// Every one of them.
    #[must_use]
    pub fn all() -> &'static [Plant] {
        Plant::value_variants()
    }
}

impl fmt::Display for Plant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}
