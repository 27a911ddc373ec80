/** The shapes of conversations and messages on the wire. */
import { joi, type Value } from '@portico/sdk';

import { version } from '../version-field.ts';

const title = joi
    .string()
    .trim()
    .min(1)
    .max(200)
    .label('Title')
    .meta({ ui: { column: 1 } });
const providerId = joi.typed<number | null>(
    joi
        .number()
        .integer()
        .min(1)
        .allow(null)
        .label('Provider')
        .description('Null: the default one')
        .meta({ ui: { ref: 'ai.providers', column: false } })
);
const pinned = joi
    .boolean()
    .label('Pinned')
    .description('Kept for ever')
    .meta({ ui: { column: 3 } });
const time = joi.string().isoDate().required();

/** A conversation as it is read. */
export const conversationSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    version: version.required(),
    title: title.required(),
    providerId: joi.typed<number | null>(providerId.required()),
    pinned: pinned.required(),
    createdAt: time.label('Began').meta({ ui: { column: 2 } }),
    updatedAt: time.label('Last message')
});
/** A conversation as it is read. */
export type Conversation = Value<typeof conversationSchema>;

/** What POST `/conversations` takes. */
export const newConversation = joi.object({
    title: title.default('New conversation'),
    providerId: joi.typed<number | null>(providerId.default(null)),
    pinned: pinned.default(false)
});
/** What PUT `/conversations/{id}` takes. */
export const changedConversation = joi.object({
    title,
    providerId: joi.typed<number | null | undefined>(providerId.optional()),
    pinned,
    version
});

const callSchema = joi.object({
    id: joi.string().required().label('Call'),
    route: joi.string().required().label('Route'),
    arguments: joi.any().required().label('Arguments'),
    status: joi.number().integer().allow(null).required().label('Status'),
    code: joi.number().integer().allow(null).required().label('Code'),
    message: joi.string().allow('', null).required().label('Message'),
    data: joi.any().label('Data'),
    truncated: joi.boolean().required().label('Cut'),
    approvalId: joi.number().integer().allow(null).required().label('Approval')
});

/** A message as it is read. */
export const messageSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    role: joi
        .valid('user', 'assistant')
        .required()
        .label('From')
        .meta({ ui: { column: 1 } }),
    text: joi
        .string()
        .allow('')
        .required()
        .label('Text')
        .meta({ ui: { column: 2 } }),
    attachments: joi.array().items(joi.string()).required().label('Attachments'),
    calls: joi.array().items(callSchema).required().label('Calls'),
    reason: joi
        .valid('stop', 'length', 'stopped', 'approval', 'limit', 'error')
        .allow(null)
        .required()
        .label('Ended by')
        .description('Null while the answer is under way, and of a question')
        .meta({
            ui: {
                column: 3,
                tones: {
                    stop: 'good',
                    length: 'warning',
                    stopped: 'neutral',
                    approval: 'busy',
                    limit: 'warning',
                    error: 'bad'
                }
            }
        }),
    usage: joi
        .object({
            input: joi.number().integer().required().label('Input').unit('token'),
            output: joi.number().integer().required().label('Output').unit('token'),
            cost: joi.number().allow(null).required().label('Cost')
        })
        .required()
        .label('Usage'),
    at: time.label('At')
});
/** A message as it is read. */
export type Message = Value<typeof messageSchema>;

/** What a question takes. */
export const questionSchema = joi.object({
    text: joi.string().min(1).max(65_536).required().label('Question'),
    attachments: joi
        .array()
        .items(
            joi.object({
                name: joi.string().min(1).max(200).required().label('Name'),
                text: joi.string().allow('').max(262_144).required().label('Text')
            })
        )
        .max(8)
        .default([])
        .label('Attachments')
});
/** A checked question of a user to the assistant. */
export type Question = Value<typeof questionSchema>;
