/** The errors that only this plugin has. */
import { defineErrors } from '@portico/sdk';

/** The plugin's own error table. The statuses of the tus errors are those of the protocol. */
export const fail = defineErrors({
    PARTIAL_BODY: { code: 40050, message: 'The body ended before its announced length; nothing was changed' },
    TUS_HEADER: { code: 40051, message: 'The header {header} is missing or not as tus 1.0 has it' },
    OUTSIDE_ROOT: { code: 40350, message: 'A path must lie below its root, without ..' },
    NOT_PERMITTED: { code: 40351, message: 'The system does not let the panel do this: {why}' },
    READ_ONLY: { code: 40352, message: 'The root {root} is read-only' },
    SHARES_OFF: { code: 40353, message: 'Public links are switched off in the settings' },
    SHARE_GONE: { code: 40450, message: 'There is nothing here' },
    WRONG_TYPE: { code: 40950, message: '{path} is a {type}, and a {wanted} is needed' },
    OTHER_DEVICE: {
        code: 40951,
        message:
            'An entry cannot be moved to another file system in one step: copy it, or remove it permanently'
    },
    INSIDE_ITSELF: { code: 40952, message: '{path} lies inside the folder that is moved or copied' },
    PRIVATE_FOLDER_UNSAFE: {
        code: 40953,
        message:
            'The folder .portico of this root belongs to another account or is open to others; remove it or close it'
    },
    CHANGED_MEANWHILE: { code: 40954, message: '{path} changed while it was read' },
    LINK_OUTSIDE: {
        code: 40956,
        message: 'The link would lead out of its root, or by way of another link: {target}'
    },
    CONFLICT_IN_BATCH: {
        code: 40955,
        message: 'Another item of the same request has this name, or lies inside this one: {path}'
    },
    OFFSET_MISMATCH: { code: 40957, message: 'The upload is at {offset}' },
    UPLOAD_GONE: { code: 41050, message: 'The upload expired' },
    TUS_VERSION: { code: 41250, message: 'This is tus 1.0.0' },
    UPLOAD_TOO_LARGE: { code: 41350, message: 'More than {limit} bytes' },
    CHUNK_TYPE: { code: 41550, message: 'A chunk is application/offset+octet-stream' },
    ARCHIVE_UNKNOWN: {
        code: 42250,
        message: 'The end of {path} names no archive that can be read or made here'
    },
    ARCHIVE_REFUSED: { code: 42251, message: 'The archive was refused, and nothing of it kept: {why}' },
    ARCHIVE_TOO_LARGE: {
        code: 42252,
        message: 'The archive was refused, and nothing of it kept: it has more than {limit} {unit}'
    },
    CHECKSUM_MISMATCH: { code: 42253, message: '{path} does not have the checksum that it should have' },
    UPLOAD_BUSY: { code: 42350, message: 'Another request writes to this upload' },
    TOO_MANY_TERMINALS: { code: 42950, message: '{limit} terminals are open, and no more are allowed' },
    CHUNK_MISMATCH: {
        code: 46050,
        message: 'The chunk does not have this checksum; nothing of it was kept'
    },
    FETCH_FAILED: { code: 50250, message: 'The address did not give the file: {why}' },
    QUOTA_EXCEEDED: {
        code: 50750,
        message: 'The root {root} may have {limit} bytes, and this would be more; nothing of it was kept'
    },
    RECORDING_FULL: {
        code: 50751,
        message: 'The terminal is recorded, and {what} may have {limit} bytes; it was ended'
    }
});
