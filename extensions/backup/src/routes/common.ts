/** What several groups of routes share. */
import { joi } from '@portico/sdk';

/** A number in a path. */
export const idSchema = joi.number().integer().min(1).required().label('Number');
/** Path parameters of one resource. */
export const idParams = joi.object({ id: idSchema });

/** A time as text; null stays. */
export function timeOf(at: number | null): string | null {
    return at === null ? null : new Date(at).toISOString();
}

/** Query parameters that bound a time. */
export const period = {
    from: joi.string().isoDate().label('From'),
    to: joi.string().isoDate().label('Until')
};
