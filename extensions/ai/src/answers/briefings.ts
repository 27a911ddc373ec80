/** What the model is told and may call, for each kind of answer. */
import type { Actor } from '@portico/sdk';

import type { ConversationRow } from '../entities.ts';
import type { AnswerRequest } from './answers.ts';
import { noTools } from './toolbox.ts';

/** Makes briefings. */
export class Briefings {
    /** An answer in a conversation. */
    chat(_actor: Actor, _conversation: ConversationRow): AnswerRequest['brief'] {
        return async () => ({ system: [], toolbox: noTools });
    }
}
