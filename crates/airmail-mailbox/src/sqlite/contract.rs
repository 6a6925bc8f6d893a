//! The contract's requests, as work for the writer.

use super::SqliteStore;
use crate::id::{AccountId, MessageId, Name, QueueId};
use crate::message::{Counts, Inbox, Message, Outgoing, Receipt, Receive, Recipients, Settle};
use crate::notifier::Waiter;
use crate::store::{
    Account, Answer, MailboxStore, Queue, QueueSettings, Selection, SendResults, SettleResults,
    StoreLoad,
};
use crate::store_error::{
    CreateQueueRefusal, DeleteRefusal, NameTaken, NotForReader, NotFound, StoreError,
};

impl MailboxStore for SqliteStore {
    fn create_account(&self, name: Name) -> Answer<'_, AccountId, StoreError<NameTaken>> {
        Box::pin(self.submit(move |writer| writer.create_account(&name)))
    }

    fn delete_account(
        &self,
        account: AccountId,
        force: bool,
    ) -> Answer<'_, (), StoreError<DeleteRefusal>> {
        Box::pin(self.submit(move |writer| writer.delete_account(account, force)))
    }

    fn find_account(&self, name: Name) -> Answer<'_, AccountId, StoreError<NotFound>> {
        Box::pin(self.submit(move |writer| writer.find_account(&name)))
    }

    fn accounts(&self, selection: Selection<AccountId>) -> Answer<'_, Vec<Account>> {
        Box::pin(self.submit(move |writer| writer.accounts(&selection)))
    }

    fn create_queue(
        &self,
        name: Name,
        settings: QueueSettings,
    ) -> Answer<'_, QueueId, StoreError<CreateQueueRefusal>> {
        Box::pin(self.submit(move |writer| writer.create_queue(&name, settings)))
    }

    fn delete_queue(
        &self,
        queue: QueueId,
        force: bool,
    ) -> Answer<'_, (), StoreError<DeleteRefusal>> {
        Box::pin(self.submit(move |writer| writer.delete_queue(queue, force)))
    }

    fn find_queue(&self, name: Name) -> Answer<'_, QueueId, StoreError<NotFound>> {
        Box::pin(self.submit(move |writer| writer.find_queue(&name)))
    }

    fn queues(&self, selection: Selection<QueueId>) -> Answer<'_, Vec<Queue>> {
        Box::pin(self.submit(move |writer| writer.queues(&selection)))
    }

    fn purge(&self, queue: QueueId) -> Answer<'_, u64, StoreError<NotFound>> {
        Box::pin(self.submit(move |writer| writer.purge(queue)))
    }

    fn counts(&self, queue: QueueId) -> Answer<'_, Counts, StoreError<NotFound>> {
        Box::pin(self.submit(move |writer| writer.counts(queue)))
    }

    fn send(&self, messages: Vec<Outgoing>) -> Answer<'_, SendResults> {
        Box::pin(self.submit(move |writer| writer.send(&messages)))
    }

    fn receive(&self, request: Receive) -> Answer<'_, Vec<Message>, StoreError<NotFound>> {
        Box::pin(self.submit(move |writer| writer.receive(request)))
    }

    fn look_up(
        &self,
        message: MessageId,
        reader: AccountId,
    ) -> Answer<'_, Option<Message>, StoreError<NotForReader>> {
        Box::pin(self.submit(move |writer| writer.look_up(message, reader)))
    }

    fn find_from(
        &self,
        sender: AccountId,
        reader: AccountId,
    ) -> Answer<'_, Option<Message>, StoreError<NotFound>> {
        Box::pin(self.submit(move |writer| writer.find_from(sender, reader)))
    }

    fn queues_for(&self, recipients: Recipients) -> Answer<'_, Vec<QueueId>> {
        Box::pin(self.submit(move |writer| writer.queues_for(recipients)))
    }

    fn settle(&self, receipts: Vec<Receipt>, what: Settle) -> Answer<'_, SettleResults> {
        Box::pin(self.submit(move |writer| writer.settle(&receipts, what)))
    }

    fn waiter(&self, inbox: Inbox) -> Answer<'_, Waiter> {
        // Every message that becomes ready passes through the one thread: no notification is missed.
        Box::pin(async move { Ok(self.notifier.waiter(inbox)) })
    }

    fn load(&self) -> StoreLoad {
        self.load_counters.load(self.waiting_max)
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            self.stop().await;
            Ok(())
        })
    }
}
