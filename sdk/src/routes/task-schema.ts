/** The schema of a task, for routes that answer with one. */
import { joi } from '../joi.ts';

/** What `reply.accepted` answers: `returns` of a route whose work is a task. */
export const taskSchema = joi
    .object({
        id: joi.number().integer().required().label('Number'),
        kind: joi.string().required().label('Kind'),
        state: joi
            .valid('queued', 'running', 'succeeded', 'failed', 'cancelled')
            .required()
            .label('State')
            .meta({
                ui: {
                    tones: {
                        queued: 'busy',
                        running: 'busy',
                        succeeded: 'good',
                        failed: 'bad',
                        cancelled: 'warning'
                    }
                }
            }),
        progress: joi
            .number()
            .min(0)
            .max(1)
            .allow(null)
            .required()
            .label('Progress')
            .description('From 0 to 1'),
        startedAt: joi.string().isoDate().allow(null).required().label('Started'),
        finishedAt: joi.string().isoDate().allow(null).required().label('Ended'),
        result: joi.any().label('Result'),
        error: joi.any().label('Error')
    })
    .unknown(true);
