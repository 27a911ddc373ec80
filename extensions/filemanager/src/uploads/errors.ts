/** Failures that only tus knows; their statuses are those of the protocol. */
import { defineErrors } from '@portico/sdk';

export const tusErrors = defineErrors({
    TUS_HEADER: { code: 40051, message: 'The header {header} is missing or not as tus 1.0 has it' },
    OFFSET_MISMATCH: { code: 40955, message: 'The upload is at {offset}' },
    UPLOAD_GONE: { code: 41050, message: 'The upload expired' },
    TUS_VERSION: { code: 41250, message: 'This is tus 1.0.0' },
    UPLOAD_TOO_LARGE: { code: 41350, message: 'More than {limit} bytes' },
    CHUNK_TYPE: { code: 41550, message: 'A chunk is application/offset+octet-stream' },
    UPLOAD_BUSY: { code: 42350, message: 'Another request writes to this upload' },
    CHECKSUM_MISMATCH: {
        code: 46050,
        message: 'The chunk does not have this checksum; nothing of it was kept'
    }
});
