/** The events of every answer that is streamed. */
import { type EventOf, joi, type Value } from '@portico/sdk';

/** One thing that was found, by a model or without one. */
export const findingSchema = joi.object({
    severity: joi
        .choice({ info: 'Information', warning: 'Warning', critical: 'Critical' })
        .required()
        .label('Severity')
        .meta({ ui: { tones: { info: 'neutral', warning: 'warning', critical: 'bad' } } }),
    subject: joi.string().allow('').max(300).required().label('Subject'),
    message: joi.string().allow('').max(4_000).required().label('What is wrong'),
    evidence: joi.string().allow('', null).max(8_000).required().label('Evidence'),
    remedy: joi.string().allow('', null).max(4_000).required().label('What helps'),
    route: joi.string().allow(null).max(300).required().label('Route').description('What shows or mends it')
});
/** One thing that was found. */
export type Finding = Value<typeof findingSchema>;

const usage = joi.object({
    input: joi.number().integer().required().label('Input').unit('token'),
    output: joi.number().integer().required().label('Output').unit('token'),
    cost: joi.number().allow(null).required().label('Cost')
});
const problem = joi.object({
    path: joi.string().allow('').required().label('Place'),
    message: joi.string().required().label('What is wrong')
});

/** The events by their names. When an answer fails, the panel sends `error` with code, reason and message after `end`, as in every stream. */
export const answerEvents = {
    start: joi.object({
        messageId: joi.number().integer().required().label('Message'),
        conversationId: joi.number().integer().required().label('Conversation')
    }),
    text: joi.object({ delta: joi.string().required().label('Text') }),
    call: joi.object({
        id: joi.string().required().label('Call'),
        route: joi.string().required().label('Route'),
        arguments: joi.any().required().label('Arguments')
    }),
    result: joi.object({
        id: joi.string().required().label('Call'),
        status: joi.number().integer().required().label('Status'),
        code: joi.number().integer().required().label('Code'),
        data: joi.any().label('Data'),
        truncated: joi.boolean().required().label('Cut')
    }),
    approval: joi.object({ id: joi.number().integer().required().label('Approval') }).unknown(),
    findings: joi.object({ findings: joi.array().items(findingSchema).required().label('Findings') }),
    document: joi.object({
        kind: joi.valid('compose', 'dockerfile', 'script', 'caddy').required().label('Kind'),
        content: joi.string().allow('').required().label('Content'),
        valid: joi.boolean().required().label('Valid'),
        problems: joi.array().items(problem).required().label('Problems')
    }),
    usage,
    end: joi.object({
        messageId: joi.number().integer().required().label('Message'),
        reason: joi
            .valid('stop', 'length', 'stopped', 'approval', 'limit', 'error')
            .required()
            .label('Ended by')
    })
};
/** One event of an answer. */
export type AnswerEvent = EventOf<typeof answerEvents>;
/** What was found wrong in a document. */
export type Problem = Value<typeof problem>;
