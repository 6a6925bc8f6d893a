//! The contract's requests, as work for the thread.

use super::SqliteStore;
use crate::bell::Watch;
use crate::id::{AccountId, MessageId, Name, QueueId};
use crate::message::{Counts, Inbox, Message, Outgoing, Receipt, Receive, Recipients, Settle};
use crate::store::{Account, Answer, Load, MailboxStore, Queue, QueueSettings, Which};
use airmail_model::Error;

impl MailboxStore for SqliteStore {
    fn create_account(&self, name: Name) -> Answer<'_, AccountId> {
        Box::pin(self.ask(move |desk| desk.create_account(&name)))
    }

    fn delete_account(&self, account: AccountId, force: bool) -> Answer<'_, ()> {
        Box::pin(self.ask(move |desk| desk.delete_account(account, force)))
    }

    fn find_account(&self, name: Name) -> Answer<'_, AccountId> {
        Box::pin(self.ask(move |desk| desk.find_account(&name)))
    }

    fn accounts(&self, which: Which<AccountId>) -> Answer<'_, Vec<Account>> {
        Box::pin(self.ask(move |desk| desk.accounts(&which)))
    }

    fn create_queue(&self, name: Name, settings: QueueSettings) -> Answer<'_, QueueId> {
        Box::pin(self.ask(move |desk| desk.create_queue(&name, settings)))
    }

    fn delete_queue(&self, queue: QueueId, force: bool) -> Answer<'_, ()> {
        Box::pin(self.ask(move |desk| desk.delete_queue(queue, force)))
    }

    fn find_queue(&self, name: Name) -> Answer<'_, QueueId> {
        Box::pin(self.ask(move |desk| desk.find_queue(&name)))
    }

    fn queues(&self, which: Which<QueueId>) -> Answer<'_, Vec<Queue>> {
        Box::pin(self.ask(move |desk| desk.queues(&which)))
    }

    fn purge(&self, queue: QueueId) -> Answer<'_, u64> {
        Box::pin(self.ask(move |desk| desk.purge(queue)))
    }

    fn counts(&self, queue: QueueId) -> Answer<'_, Counts> {
        Box::pin(self.ask(move |desk| desk.counts(queue)))
    }

    fn send(&self, messages: Vec<Outgoing>) -> Answer<'_, Vec<Result<MessageId, Error>>> {
        Box::pin(self.ask(move |desk| desk.send(&messages)))
    }

    fn receive(&self, request: Receive) -> Answer<'_, Vec<Message>> {
        Box::pin(self.ask(move |desk| desk.receive(request)))
    }

    fn look_up(&self, message: MessageId, reader: AccountId) -> Answer<'_, Option<Message>> {
        Box::pin(self.ask(move |desk| desk.look_up(message, reader)))
    }

    fn find_from(&self, sender: AccountId, reader: AccountId) -> Answer<'_, Option<Message>> {
        Box::pin(self.ask(move |desk| desk.find_from(sender, reader)))
    }

    fn queues_for(&self, recipients: Recipients) -> Answer<'_, Vec<QueueId>> {
        Box::pin(self.ask(move |desk| desk.queues_for(recipients)))
    }

    fn settle(&self, receipts: Vec<Receipt>, what: Settle) -> Answer<'_, Vec<Result<(), Error>>> {
        Box::pin(self.ask(move |desk| desk.settle(&receipts, what)))
    }

    fn watch(&self, line: Inbox) -> Answer<'_, Watch> {
        // Everything that rings passes through the one thread: nothing can be missed.
        Box::pin(async move { Ok(self.bell.watch(line)) })
    }

    fn load(&self) -> Load {
        self.counts.load(self.waiting_max)
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            self.end().await;
            Ok(())
        })
    }
}
