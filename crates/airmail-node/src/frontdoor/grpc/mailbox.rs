//! Mailboxes: each call translates a request and its answer. What is in between is the store's,
//! which does many requests in one round trip.
//!
//! A call that its client gives up is given up: what it would have taken stays for others.

mod answering;

use super::{Answers, Services};
use airmail_broker::MailboxAction;
use airmail_mailbox::message::{Recipients, Settle};
use airmail_model::Error;
use airmail_model::mailbox::{AccountId, MessageId, QueueId, Receive};
use airmail_proto::mailbox as translate;
use airmail_proto::server::mailbox_server::Mailbox;
use airmail_proto::v1;
use answering::Asked;
use std::time::Duration;
use tonic::{Request, Response, Status};

type Answer<T> = Result<Response<T>, Status>;

impl Services {
    async fn receive_pieces(
        &self,
        request: Receive,
        wait: Duration,
    ) -> Result<Answers<v1::ReceiveResponse>, Error> {
        let _waiting = (!wait.is_zero()).then(|| self.metrics().mailbox.waiting());
        let messages = self.mailboxes.receive(request, wait).await?;
        self.metrics()
            .mailbox
            .handed_out(request.take, messages.len());
        let pieces = translate::pieces(messages).into_iter().map(Ok);
        Ok(Box::pin(tokio_stream::iter(pieces)))
    }

    async fn settle(
        &self,
        receipts: Vec<v1::MailboxReceipt>,
        what: Settle,
    ) -> Result<v1::SettleResponse, Error> {
        let receipts = translate::receipts_from_proto(receipts);
        let settled = self.mailboxes.settle(receipts, what).await?;
        self.metrics().mailbox.settled(what, &settled);
        Ok(translate::settled_to_proto(settled))
    }

    async fn send_all(&self, request: v1::SendRequest) -> Result<v1::SendResponse, Error> {
        let messages = request.messages.into_iter();
        let messages = messages.map(translate::outgoing_from_proto).collect();
        let sent = self.mailboxes.send_all(messages).await?;
        self.metrics().mailbox.sent(&sent);
        Ok(translate::sent_to_proto(sent))
    }
}

/// To which queues a request sends, as whom; each pair once.
fn sending(request: &v1::SendRequest) -> Vec<MailboxAction> {
    let mut actions = Vec::with_capacity(1);
    for message in &request.messages {
        let (queue, sender) = (QueueId(message.queue), AccountId(message.from));
        let action = MailboxAction::Send(queue, sender);
        if actions.last() != Some(&action) && !actions.contains(&action) {
            actions.push(action);
        }
    }
    actions
}

#[tonic::async_trait]
impl Mailbox for Services {
    type ReceiveStream = Answers<v1::ReceiveResponse>;

    async fn ping(&self, request: Request<v1::PingRequest>) -> Answer<v1::PingResponse> {
        let asked = Asked::new("Ping", &request);
        let payload = self.mailboxes.ping(request.into_inner().payload);
        let pong = async { Ok(v1::PingResponse { payload }) };
        self.answer_mailbox(&asked, &[MailboxAction::Ping], pong)
            .await
    }

    async fn create_account(
        &self,
        request: Request<v1::CreateAccountRequest>,
    ) -> Answer<v1::CreateAccountResponse> {
        let asked = Asked::new("CreateAccount", &request);
        let name = request.into_inner().name;
        let created = async {
            let AccountId(id) = self.mailboxes.create_account(&name).await?;
            Ok(v1::CreateAccountResponse { id })
        };
        self.answer_mailbox(&asked, &[MailboxAction::Administer], created)
            .await
    }

    async fn delete_account(
        &self,
        request: Request<v1::DeleteAccountRequest>,
    ) -> Answer<v1::DeleteAccountResponse> {
        let asked = Asked::new("DeleteAccount", &request);
        let v1::DeleteAccountRequest { id, force } = request.into_inner();
        let deleted = async {
            let deleted = self.mailboxes.delete_account(AccountId(id), force).await;
            deleted.map(|()| v1::DeleteAccountResponse {})
        };
        self.answer_mailbox(&asked, &[MailboxAction::Administer], deleted)
            .await
    }

    async fn find_account(
        &self,
        request: Request<v1::FindAccountRequest>,
    ) -> Answer<v1::FindAccountResponse> {
        let asked = Asked::new("FindAccount", &request);
        let name = request.into_inner().name;
        let found = async {
            let AccountId(id) = self.mailboxes.find_account(&name).await?;
            Ok(v1::FindAccountResponse { id })
        };
        self.answer_mailbox(&asked, &[MailboxAction::See], found)
            .await
    }

    async fn list_accounts(
        &self,
        request: Request<v1::ListAccountsRequest>,
    ) -> Answer<v1::ListAccountsResponse> {
        let asked = Asked::new("ListAccounts", &request);
        let selection = translate::accounts_from_proto(request.into_inner());
        let listed = async {
            let accounts = self.mailboxes.accounts(selection).await?;
            let accounts = accounts.iter().map(translate::account_to_proto).collect();
            Ok(v1::ListAccountsResponse { accounts })
        };
        self.answer_mailbox(&asked, &[MailboxAction::See], listed)
            .await
    }

    async fn create_queue(
        &self,
        request: Request<v1::CreateQueueRequest>,
    ) -> Answer<v1::CreateQueueResponse> {
        let asked = Asked::new("CreateQueue", &request);
        let v1::CreateQueueRequest { name, settings } = request.into_inner();
        let settings = translate::settings_from_proto(settings);
        let created = async {
            let QueueId(id) = self.mailboxes.create_queue(&name, settings).await?;
            Ok(v1::CreateQueueResponse { id })
        };
        self.answer_mailbox(&asked, &[MailboxAction::Administer], created)
            .await
    }

    async fn delete_queue(
        &self,
        request: Request<v1::DeleteQueueRequest>,
    ) -> Answer<v1::DeleteQueueResponse> {
        let asked = Asked::new("DeleteQueue", &request);
        let v1::DeleteQueueRequest { id, force } = request.into_inner();
        let deleted = async {
            let deleted = self.mailboxes.delete_queue(QueueId(id), force).await;
            deleted.map(|()| v1::DeleteQueueResponse {})
        };
        self.answer_mailbox(&asked, &[MailboxAction::Administer], deleted)
            .await
    }

    async fn find_queue(
        &self,
        request: Request<v1::FindQueueRequest>,
    ) -> Answer<v1::FindQueueResponse> {
        let asked = Asked::new("FindQueue", &request);
        let name = request.into_inner().name;
        let found = async {
            let QueueId(id) = self.mailboxes.find_queue(&name).await?;
            Ok(v1::FindQueueResponse { id })
        };
        self.answer_mailbox(&asked, &[MailboxAction::See], found)
            .await
    }

    async fn list_queues(
        &self,
        request: Request<v1::ListQueuesRequest>,
    ) -> Answer<v1::ListQueuesResponse> {
        let asked = Asked::new("ListQueues", &request);
        let selection = translate::queues_from_proto(request.into_inner());
        let listed = async {
            let queues = self.mailboxes.queues(selection).await?;
            let queues = queues.iter().map(translate::queue_to_proto).collect();
            Ok(v1::ListQueuesResponse { queues })
        };
        self.answer_mailbox(&asked, &[MailboxAction::See], listed)
            .await
    }

    async fn purge_queue(
        &self,
        request: Request<v1::PurgeQueueRequest>,
    ) -> Answer<v1::PurgeQueueResponse> {
        let asked = Asked::new("PurgeQueue", &request);
        let queue = QueueId(request.into_inner().id);
        let purged = async {
            let messages = self.mailboxes.purge(queue).await?;
            Ok(v1::PurgeQueueResponse { messages })
        };
        self.answer_mailbox(&asked, &[MailboxAction::Administer], purged)
            .await
    }

    async fn count_messages(
        &self,
        request: Request<v1::CountMessagesRequest>,
    ) -> Answer<v1::CountMessagesResponse> {
        let asked = Asked::new("CountMessages", &request);
        let queue = QueueId(request.into_inner().queue);
        let counted = async {
            let counts = self.mailboxes.counts(queue).await?;
            Ok(translate::counts_to_proto(counts))
        };
        self.answer_mailbox(&asked, &[MailboxAction::See], counted)
            .await
    }

    async fn send(&self, request: Request<v1::SendRequest>) -> Answer<v1::SendResponse> {
        let asked = Asked::new("Send", &request);
        let request = request.into_inner();
        let actions = sending(&request);
        let sent = self.send_all(request);
        self.answer_mailbox(&asked, &actions, sent).await
    }

    async fn receive(&self, request: Request<v1::ReceiveRequest>) -> Answer<Self::ReceiveStream> {
        let asked = Asked::new("Receive", &request);
        let wanted = request.get_ref();
        let (queue, reader) = (QueueId(wanted.queue), AccountId(wanted.reader));
        let action = MailboxAction::Receive(queue, reader);
        let received = async {
            let (request, wait) = translate::receive_from_proto(request.get_ref())?;
            self.receive_pieces(request, wait).await
        };
        self.answer_mailbox(&asked, &[action], received).await
    }

    async fn acknowledge(
        &self,
        request: Request<v1::AcknowledgeRequest>,
    ) -> Answer<v1::SettleResponse> {
        let asked = Asked::new("Acknowledge", &request);
        let receipts = request.into_inner().receipts;
        let settled = self.settle(receipts, Settle::Acknowledge);
        self.answer_mailbox(&asked, &[MailboxAction::Settle], settled)
            .await
    }

    async fn extend(&self, request: Request<v1::ExtendRequest>) -> Answer<v1::SettleResponse> {
        let asked = Asked::new("Extend", &request);
        let v1::ExtendRequest { receipts, lease_ms } = request.into_inner();
        let settled = self.settle(receipts, Settle::Extend { lease_ms });
        self.answer_mailbox(&asked, &[MailboxAction::Settle], settled)
            .await
    }

    async fn release(&self, request: Request<v1::ReleaseRequest>) -> Answer<v1::SettleResponse> {
        let asked = Asked::new("Release", &request);
        let v1::ReleaseRequest { receipts, delay_ms } = request.into_inner();
        let settled = self.settle(receipts, Settle::Release { delay_ms });
        self.answer_mailbox(&asked, &[MailboxAction::Settle], settled)
            .await
    }

    async fn look_up_message(
        &self,
        request: Request<v1::LookUpMessageRequest>,
    ) -> Answer<v1::LookUpMessageResponse> {
        let asked = Asked::new("LookUpMessage", &request);
        let v1::LookUpMessageRequest { id, reader } = request.into_inner();
        let action = MailboxAction::Find(AccountId(reader));
        let found = async {
            let found = self.mailboxes.look_up(MessageId(id), AccountId(reader));
            let message = Some(translate::message_to_proto(found.await?));
            Ok(v1::LookUpMessageResponse { message })
        };
        self.answer_mailbox(&asked, &[action], found).await
    }

    async fn find_message(
        &self,
        request: Request<v1::FindMessageRequest>,
    ) -> Answer<v1::FindMessageResponse> {
        let asked = Asked::new("FindMessage", &request);
        let v1::FindMessageRequest { from, reader } = request.into_inner();
        let action = MailboxAction::Find(AccountId(reader));
        let found = async {
            let found = self.mailboxes.find_from(AccountId(from), AccountId(reader));
            let message = Some(translate::message_to_proto(found.await?));
            Ok(v1::FindMessageResponse { message })
        };
        self.answer_mailbox(&asked, &[action], found).await
    }

    async fn find_queues(
        &self,
        request: Request<v1::FindQueuesRequest>,
    ) -> Answer<v1::FindQueuesResponse> {
        let asked = Asked::new("FindQueues", &request);
        let recipients: Recipients = translate::recipients_from_proto(request.into_inner().reader);
        let found = async {
            let queues = self.mailboxes.queues_for(recipients).await?;
            let queues = queues.into_iter().map(|queue| queue.0).collect();
            Ok(v1::FindQueuesResponse { queues })
        };
        self.answer_mailbox(&asked, &[MailboxAction::See], found)
            .await
    }
}
