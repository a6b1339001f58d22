//! From the node's words to typed errors.

use committor_sdk::ProgramError;
use solana_instruction_error::InstructionError;
use solana_message::VersionedMessage;
use solana_rpc_client_api::{
    client_error::{self, ErrorKind},
    request::{RpcError, RpcResponseErrorData},
};
use solana_transaction_error::TransactionError;

use super::TransactionFailure;

/// Puts a transaction's error into words: which program's it is follows from the message.
pub(super) fn failure(
    error: TransactionError,
    message: &VersionedMessage,
    logs: Vec<String>,
) -> TransactionFailure {
    let program_error = match &error {
        TransactionError::InstructionError(index, InstructionError::Custom(code)) => {
            program_of(message, *index).and_then(|program| ProgramError::decode(&program, *code))
        }
        _ => None,
    };
    TransactionFailure { error, program_error, logs }
}

fn program_of(message: &VersionedMessage, index: u8) -> Option<solana_address::Address> {
    let instruction = message.instructions().get(usize::from(index))?;
    message.static_account_keys().get(usize::from(instruction.program_id_index)).copied()
}

/// The error of a refused preflight, with its logs; `None` if the node failed in another way.
pub(super) fn preflight(error: &client_error::Error) -> Option<(TransactionError, Vec<String>)> {
    if let ErrorKind::RpcError(RpcError::RpcResponseError {
        data: RpcResponseErrorData::SendTransactionPreflightFailure(result),
        ..
    }) = error.kind()
    {
        let error = result.err.clone()?.into();
        return Some((error, result.logs.clone().unwrap_or_default()));
    }
    error.get_transaction_error().map(|error| (error, Vec::new()))
}
