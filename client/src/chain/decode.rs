//! From the node's words to typed errors.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use committor_sdk::ProgramError;
use solana_address::Address;
use solana_instruction_error::InstructionError;
use solana_message::VersionedMessage;
use solana_rpc_client_api::{
    client_error::{self, ErrorKind},
    custom_error::JSON_RPC_SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE,
    request::{RpcError, RpcResponseErrorData},
};
use solana_transaction::versioned::VersionedTransaction;
use solana_transaction_error::TransactionError;

use super::TransactionFailure;

/// A transaction as leaders take it. Bincode does not know all formats.
pub(super) fn wire(transaction: &VersionedTransaction) -> Result<Vec<u8>, String> {
    wincode::serialize(transaction).map_err(|error| error.to_string())
}

/// A transaction as nodes take it.
pub(super) fn base64(transaction: &VersionedTransaction) -> Result<String, String> {
    Ok(BASE64_STANDARD.encode(wire(transaction)?))
}

/// Puts a transaction's error into words: which program's it is follows from the logs or the message.
pub(super) fn failure(
    error: TransactionError,
    message: Option<&VersionedMessage>,
    logs: Vec<String>,
) -> TransactionFailure {
    let program_error = match &error {
        TransactionError::InstructionError(index, InstructionError::Custom(code)) => {
            // The instruction's program may only pass on what a program that it called returned.
            let program = failed_first(&logs).or_else(|| program_of(message?, *index));
            program.and_then(|program| ProgramError::decode(&program, *code))
        }
        _ => None,
    };
    TransactionFailure { error, program_error, logs }
}

/// The innermost program that failed, by the logs.
fn failed_first(logs: &[String]) -> Option<Address> {
    logs.iter().find_map(|line| {
        let (program, _) = line.strip_prefix("Program ")?.split_once(" failed: ")?;
        program.parse().ok()
    })
}

fn program_of(message: &VersionedMessage, index: u8) -> Option<Address> {
    let instruction = message.instructions().get(usize::from(index))?;
    message.static_account_keys().get(usize::from(instruction.program_id_index)).copied()
}

/// The error of a refused preflight, with its logs; `None` if the node failed in another way.
pub(super) fn preflight(error: &client_error::Error) -> Option<(TransactionError, Vec<String>)> {
    match error.kind() {
        ErrorKind::RpcError(RpcError::RpcResponseError {
            data: RpcResponseErrorData::SendTransactionPreflightFailure(result),
            ..
        }) => Some((result.err.clone()?.into(), result.logs.clone().unwrap_or_default())),
        // Some nodes put it into words alone. Only of these two errors is it important to know them.
        ErrorKind::RpcError(RpcError::RpcResponseError {
            code: JSON_RPC_SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE,
            message,
            ..
        }) => [TransactionError::AlreadyProcessed, TransactionError::BlockhashNotFound]
            .into_iter()
            .find(|error| message.contains(&error.to_string()))
            .map(|error| (error, Vec::new())),
        _ => error.get_transaction_error().map(|error| (error, Vec::new())),
    }
}

#[cfg(test)]
mod tests {
    use committor_sdk::{chunk_buffer, delegation};
    use solana_instruction::Instruction;
    use solana_message::v0;

    use super::*;

    fn decoded(programs: &[Address], logs: &[String], index: u8, code: u32) -> Option<ProgramError> {
        let instruction =
            |program_id: &Address| Instruction { program_id: *program_id, accounts: vec![], data: vec![] };
        let instructions: Vec<Instruction> = programs.iter().map(instruction).collect();
        let message = v0::Message::try_compile(&Address::default(), &instructions, &[], Default::default());
        let error = TransactionError::InstructionError(index, InstructionError::Custom(code));
        failure(error, Some(&VersionedMessage::V0(message.unwrap())), logs.to_vec()).program_error
    }

    #[test]
    fn an_error_that_a_node_puts_into_words_alone_is_known() {
        let error = |code, message: &str| {
            let (message, data) = (message.to_owned(), RpcResponseErrorData::Empty);
            let error = ErrorKind::from(RpcError::RpcResponseError { code, message, data });
            preflight(&error.into()).map(|(error, _)| error)
        };
        let text = "Transaction simulation failed: This transaction has already been processed";
        assert_eq!(error(-32002, text), Some(TransactionError::AlreadyProcessed));
        assert_eq!(error(-32002, "failed: Blockhash not found"), Some(TransactionError::BlockhashNotFound));
        assert_eq!(error(-32002, "failed: something else"), None);
        assert_eq!(error(-32602, text), None);
    }

    #[test]
    fn a_code_is_of_the_program_that_failed_first() {
        let other = Address::new_from_array([7; 32]);
        let name = |error: Option<ProgramError>| error.map(|error| error.name());
        let programs = [chunk_buffer::ID, delegation::ID, other];
        assert_eq!(name(decoded(&programs, &[], 0, 6_000)), Some("WrongAuthority"));
        assert_eq!(name(decoded(&programs, &[], 1, 6_001)), Some("RecordMismatch"));
        assert_eq!(name(decoded(&programs, &[], 2, 6_001)), None);
        assert_eq!(name(decoded(&programs, &[], 9, 6_001)), None);
        let logs = [
            format!("Program {} failed: custom program error: 0x1771", delegation::ID),
            format!("Program {other} failed: custom program error: 0x1771"),
        ];
        assert_eq!(name(decoded(&programs, &logs, 2, 6_001)), Some("RecordMismatch"));
    }
}
