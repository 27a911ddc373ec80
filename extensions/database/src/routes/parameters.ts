/** Parameters that routes share. */
import { joi } from '@portico/sdk';

/** The number of a server in a path. */
export const serverId = joi
    .number()
    .integer()
    .min(1)
    .required()
    .label('Server')
    .meta({ ui: { ref: 'database.servers' } });
/** Path parameters of a server. */
export const serverParams = joi.object({ id: serverId });
/** A name on a server: it is data, so it may hold anything but a zero byte. */
export const existingName = () =>
    joi
        .string()
        .max(255)
        .pattern(/^[^\0]+$/, 'a name');
/** A name in a path: it is only ever sent to the server as data, so slashes and backslashes are letters as others. */
export const nameInPath = () => existingName().required().meta({ anyText: true });
/** A name for what is made: 1 to 63 bytes, no slash, no control characters. */
export const newName = () =>
    joi.typed<string>(
        joi
            .string()
            .pattern(/^[^\p{C}/]+$/u, 'no slash and no control characters')
            .custom(
                (value: string, helpers) =>
                    Buffer.byteLength(value) <= 63 ? value : helpers.error('string.max', { limit: 63 }),
                'At most 63 bytes'
            )
            .required()
            .label('Name')
    );
/** Path parameters of a database. */
export const databaseParams = joi.object({ id: serverId, db: nameInPath().label('Database') });
/** Path parameters of a table. */
export const tableParams = databaseParams.keys({ table: nameInPath().label('Table') });
