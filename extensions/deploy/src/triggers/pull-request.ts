/** What a delivery of a git server says of a pull request. */
import { joi, type WebhookHeaders } from '@portico/sdk';

import { commitForm, refForm } from '../git/remote/refs.ts';
import { readBody } from './delivery.ts';

/** A pull request that was opened, changed or closed. */
export interface PullRequest {
    readonly number: number;
    /** It has a new head, or is over. */
    readonly change: 'head' | 'closed';
    readonly commit: string;
    /** Where the git server has its head. */
    readonly ref: string;
    /** The branch that it comes from, and the one that it goes to. */
    readonly branch: string;
    readonly target: string;
    /** It comes from another repository. */
    readonly fork: boolean;
}

const ref = joi.string().pattern(refForm).max(200).required();
const number = joi
    .number()
    .integer()
    .min(1)
    .max(2 ** 31)
    .required();
const commit = joi.string().pattern(commitForm).required();
const repository = joi.object({ id: joi.number().integer().required() }).unknown(true);

const common = joi
    .object({
        action: joi.string().required(),
        number,
        pull_request: joi
            .object({
                head: joi
                    .object({ ref, sha: commit, repo: repository.allow(null) })
                    .unknown(true)
                    .required(),
                base: joi.object({ ref, repo: repository.required() }).unknown(true).required()
            })
            .unknown(true)
            .required()
    })
    .unknown(true)
    .required();
const gitlab = joi
    .object({
        object_attributes: joi
            .object({
                action: joi.string().required(),
                iid: number,
                oldrev: joi.string(),
                source_branch: ref,
                target_branch: ref,
                source_project_id: joi.number().integer().allow(null),
                target_project_id: joi.number().integer().required(),
                last_commit: joi.object({ id: commit }).unknown(true).required()
            })
            .unknown(true)
            .required()
    })
    .unknown(true)
    .required();

/** The form in which GitHub and Gitea send it. */
interface CommonBody {
    readonly action: string;
    readonly number: number;
    readonly pull_request: {
        readonly head: {
            readonly ref: string;
            readonly sha: string;
            /** Null when the fork is gone. */
            readonly repo?: { readonly id: number } | null;
        };
        readonly base: { readonly ref: string; readonly repo: { readonly id: number } };
    };
}
interface GitlabBody {
    readonly object_attributes: {
        readonly action: string;
        readonly iid: number;
        readonly oldrev?: string;
        readonly source_branch: string;
        readonly target_branch: string;
        readonly source_project_id?: number | null;
        readonly target_project_id: number;
        readonly last_commit: { readonly id: string };
    };
}

const heads = new Set(['opened', 'synchronize', 'synchronized', 'reopened', 'open', 'reopen']);
const ends = new Set(['closed', 'close', 'merge']);

/** The pull request that a delivery says; null for every other event, and for changes of its text alone. */
export function pullRequestOf(headers: WebhookHeaders, type: string, body: Buffer): PullRequest | null {
    const event = headers['x-github-event'] ?? headers['x-gitea-event'] ?? headers['x-gitlab-event'] ?? '';
    if (event === 'Merge Request Hook') {
        return fromGitlab(readBody(type, body));
    }
    return event === 'pull_request' || event === 'pull_request_sync'
        ? fromCommon(readBody(type, body))
        : null;
}

function fromCommon(body: unknown): PullRequest | null {
    const { error, value } = common.validate(body) as { error?: Error; value: CommonBody };
    if (error !== undefined) {
        return null;
    }
    const { head, base } = value.pull_request;
    return pullRequest(value.action, {
        number: value.number,
        ref: `refs/pull/${value.number}/head`,
        commit: head.sha,
        branch: head.ref,
        target: base.ref,
        fork: head.repo?.id !== base.repo.id
    });
}

function fromGitlab(body: unknown): PullRequest | null {
    const { error, value } = gitlab.validate(body) as { error?: Error; value: GitlabBody };
    if (error !== undefined) {
        return null;
    }
    const { action, oldrev, iid, last_commit: last, ...said } = value.object_attributes;
    // An update without an older head changed the text alone.
    return pullRequest(action === 'update' && oldrev !== undefined ? 'synchronize' : action, {
        number: iid,
        ref: `refs/merge-requests/${iid}/head`,
        commit: last.id,
        branch: said.source_branch,
        target: said.target_branch,
        fork: said.source_project_id !== said.target_project_id
    });
}

function pullRequest(action: string, said: Omit<PullRequest, 'change'>): PullRequest | null {
    return heads.has(action)
        ? { ...said, change: 'head' }
        : ends.has(action)
          ? { ...said, change: 'closed' }
          : null;
}
