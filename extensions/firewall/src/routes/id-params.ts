import { joi } from '@portico/sdk';

/** Path parameters of one object. */
export const idParams = joi.object({ id: joi.number().integer().min(1).required().label('Number') });
