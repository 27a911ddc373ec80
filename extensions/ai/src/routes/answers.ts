/** The routes whose answers come from a model, as they come. */
import { answerEvents } from '../answers/events.ts';
import { questionSchema } from '../conversations/schema.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { conversationParams as params } from './conversations.ts';

/** Bytes of a question with its attachments: what the schema allows, and the quotes of JSON. */
const mostBytes = 6 * 1_048_576;

/** Declares the streams of a conversation. */
export function registerAnswerRoutes(ctx: Ctx, { answers, conversations, briefings }: Services): void {
    ctx.stream({
        method: 'POST',
        path: '/conversations/{id}/messages',
        id: 'ask',
        access: 'chat',
        summary: 'Ask the assistant',
        ui: { title: 'Ask', primary: true },
        maxBytes: mostBytes,
        validate: { params, payload: questionSchema },
        events: answerEvents,
        async handler({ actor, params: { id }, payload, signal }) {
            const conversation = await conversations.get(actor, id);
            const brief = briefings.chat(actor, conversation);
            return answers.begin({ actor, conversation, signal, question: payload, brief });
        }
    });
    ctx.stream({
        method: 'POST',
        path: '/conversations/{id}/continue',
        id: 'continue',
        access: 'chat',
        summary: 'Let the assistant go on',
        description: 'After an approval, with what came of it; after a stop or a limit, where it was.',
        ui: { title: 'Go on', role: 'action' },
        validate: { params },
        events: answerEvents,
        async handler({ actor, params: { id }, signal }) {
            const conversation = await conversations.get(actor, id);
            const brief = briefings.chat(actor, conversation);
            return answers.begin({ actor, conversation, signal, question: null, brief });
        }
    });
    ctx.stream({
        method: 'POST',
        path: '/conversations/{id}/regenerate',
        id: 'regenerate',
        access: 'chat',
        summary: 'Answer the last question anew',
        ui: { title: 'Answer anew', role: 'action' },
        validate: { params },
        events: answerEvents,
        async handler({ actor, params: { id }, signal }) {
            const conversation = await conversations.get(actor, id);
            const brief = briefings.chat(actor, conversation);
            return answers.begin({ actor, conversation, signal, question: null, anew: true, brief });
        }
    });
}
