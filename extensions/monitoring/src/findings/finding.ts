/** One thing that is not as it should be. */
import { joi, type Value } from '@portico/sdk';

/** The shape of a finding in the answer of `/unhealthy`. */
export const findingSchema = joi.object({
    kind: joi.valid('alert', 'disk', 'monitoring', 'plugin', 'engine').required(),
    severity: joi.valid('info', 'warning', 'critical').required(),
    subject: joi.string().required().description('What it is about: a metric, a mount point, a plugin'),
    message: joi.string().required(),
    since: joi.string().isoDate().allow(null).required(),
    remedy: joi.string().allow(null).required()
});

/** One thing that is not as it should be. */
export type Finding = Value<typeof findingSchema>;
