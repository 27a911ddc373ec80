/** What a delivery of a git server says. */
import { joi, type WebhookHeaders } from '@portico/sdk';

import { commitForm, refForm } from '../git/remote/refs.ts';

/** A push to a branch or a tag. */
export interface Push {
    readonly kind: 'branch' | 'tag';
    readonly name: string;
    readonly commit: string;
    readonly message: string;
    /** Files that changed; null where the delivery does not name all of them. */
    readonly files: readonly string[] | null;
}

const text = joi.string().allow('', null).max(1_000_000);
const files = joi.array().items(joi.string().max(10_000)).max(100_000).allow(null);
const commit = joi.object({ message: text, added: files, modified: files, removed: files }).unknown(true);

/** What of a push counts here; the rest of it is whatever the server sends. */
const pushSchema = joi
    .object({
        ref: joi.string().max(1_000).required(),
        after: joi.string().pattern(commitForm).required(),
        commits: joi.array().items(commit).max(10_000).allow(null),
        head_commit: commit.allow(null),
        /** How many commits were pushed: of GitLab, and of Gitea, which names five of them. */
        total_commits_count: joi.number(),
        total_commits: joi.number()
    })
    .unknown(true);

/** The form in which a push is read. */
interface PushBody {
    readonly ref: string;
    readonly after: string;
    readonly commits?: readonly CommitBody[] | null;
    readonly head_commit?: CommitBody | null;
    readonly total_commits_count?: number;
    readonly total_commits?: number;
}
interface CommitBody {
    readonly message?: string | null;
    readonly added?: readonly string[] | null;
    readonly modified?: readonly string[] | null;
    readonly removed?: readonly string[] | null;
}

/** A server that leaves commits out names at most so many. */
const leastLeftOut = 20;

/** The push that a delivery says; null for every other event, a removed branch, and what cannot be read. */
export function pushOf(headers: WebhookHeaders, type: string, body: Buffer): Push | null {
    const event = headers['x-github-event'] ?? headers['x-gitea-event'] ?? headers['x-gitlab-event'] ?? '';
    if (!['push', 'Push Hook', 'Tag Push Hook'].includes(event)) {
        return null;
    }
    const { error, value } = pushSchema.validate(readBody(type, body)) as { error?: Error; value: PushBody };
    if (error !== undefined || /^0+$/.test(value.after)) {
        return null;
    }
    const [, kind = '', name = ''] = /^refs\/(heads|tags)\/(.+)$/s.exec(value.ref) ?? [];
    if (kind === '' || !refForm.test(name)) {
        return null;
    }
    const head = value.head_commit ?? value.commits?.at(-1) ?? null;
    return {
        kind: kind === 'heads' ? 'branch' : 'tag',
        name,
        commit: value.after,
        message: head?.message ?? '',
        files: filesOf(value)
    };
}

/** The id of a delivery; null where the server gives none. */
export function deliveryId(headers: WebhookHeaders): string | null {
    const names = ['x-github-delivery', 'x-gitea-delivery', 'webhook-id', 'x-gitlab-event-uuid'];
    return names.map((name) => headers[name]).find((id) => id !== undefined && id.length <= 200) ?? null;
}

function filesOf({
    commits,
    total_commits_count: gitlab,
    total_commits: gitea
}: PushBody): readonly string[] | null {
    if (
        commits == null ||
        commits.length === 0 ||
        commits.length >= leastLeftOut ||
        (gitlab ?? gitea ?? 0) > commits.length
    ) {
        return null;
    }
    const changes = commits.map(({ added, modified, removed }) =>
        [added, modified, removed].filter((each) => each != null)
    );
    // A commit without any list is one whose files are not told.
    return changes.some((lists) => lists.length === 0) ? null : changes.flat(2);
}

/** The JSON of a delivery, which may come in a form; null for what is none. */
export function readBody(type: string, body: Buffer): unknown {
    const isForm = type.startsWith('application/x-www-form-urlencoded');
    const json = isForm ? (new URLSearchParams(body.toString()).get('payload') ?? '') : body.toString();
    try {
        return JSON.parse(json) as unknown;
    } catch {
        return null;
    }
}
