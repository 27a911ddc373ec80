/** One thing that is not as it should be. */
import { joi, type Value } from '@portico/sdk';

/** The shape of a finding in the answer of `/unhealthy`. */
export const findingSchema = joi.object({
    kind: joi
        .valid(
            'alert',
            'disk',
            'monitoring',
            'plugin',
            'engine',
            'unit',
            'host',
            'certificate',
            'task',
            'check',
            'upstream',
            'drive',
            'raid',
            'sensor'
        )
        .required()
        .label('Kind'),
    severity: joi
        .valid('info', 'warning', 'critical')
        .required()
        .label('Severity')
        .meta({ ui: { tones: { info: 'neutral', warning: 'warning', critical: 'bad' } } }),
    subject: joi
        .string()
        .required()
        .label('Subject')
        .description('What it is about: a metric, a mount point, a plugin'),
    message: joi.string().required().label('What is wrong'),
    since: joi.string().isoDate().allow(null).required().label('Since'),
    remedy: joi.string().allow(null).required().label('What helps')
});

/** One thing that is not as it should be. */
export type Finding = Value<typeof findingSchema>;
