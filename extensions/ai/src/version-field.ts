/** The version of what is read and changed, which acts as If-Match in a write. */
import { joi } from '@portico/sdk';

/** The field `version` of bodies and answers. */
export const version = joi
    .number()
    .integer()
    .min(1)
    .label('Version')
    .meta({ ui: { widget: 'hidden' } });
