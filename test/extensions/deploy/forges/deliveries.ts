/** Deliveries of git servers, in the shapes that their documentation and sources show, signed as each of them signs. */
import { createHmac, randomUUID } from 'node:crypto';

/** Headers of a delivery. */
export type Headers = Readonly<Record<string, string>>;
/** A git server whose deliveries are taken. */
export type Sender = 'github' | 'gitea' | 'gitlab';

/** What a push says. */
export interface PushSaid {
    readonly ref?: string;
    readonly commit: string;
    readonly message?: string;
    /** Files that the one commit of the push changed; null: the server does not say. */
    readonly files?: readonly string[] | null;
}

/** What a pull request says. */
export interface PullSaid {
    readonly number: number;
    readonly commit: string;
    readonly action: 'opened' | 'pushed' | 'edited' | 'closed';
    readonly fork?: boolean;
    readonly target?: string;
}

const nothing = '0'.repeat(40);
const user = { id: 1, login: 'ada', full_name: 'Ada', email: 'ada@example.test', username: 'ada' };
const gitlabUser = { id: 4, name: 'Ada', username: 'ada', email: '[REDACTED]' };
const gitlabProject = {
    ...{ id: 15, name: 'shop', description: '', namespace: 'acme', visibility_level: 0 },
    ...{ web_url: 'https://git.example/acme/shop', git_ssh_url: 'git@git.example:acme/shop.git' },
    ...{ git_http_url: 'https://git.example/acme/shop.git', path_with_namespace: 'acme/shop' },
    ...{ default_branch: 'main', ci_config_path: null }
};
const repository = (id: number) => ({
    ...{ id, name: 'shop', full_name: 'acme/shop', private: true, default_branch: 'main', owner: user },
    ...{ clone_url: 'https://git.example/acme/shop.git', ssh_url: 'git@git.example:acme/shop.git' }
});

/** The headers that sign a body. GitHub and Gitea use the text of the secret, GitLab the bytes behind `whsec_`. */
export function signed(sender: Sender, event: string, body: string, secret: string): Headers {
    const id = randomUUID();
    const hex = createHmac('sha256', secret).update(body).digest('hex');
    if (sender === 'gitlab') {
        const stamp = String(Math.floor(Date.now() / 1_000));
        const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
        const mac = createHmac('sha256', key).update(`${id}.${stamp}.${body}`).digest('base64');
        return {
            'user-agent': 'GitLab/18.10.0',
            ...{ 'x-gitlab-event': event, 'x-gitlab-event-uuid': randomUUID(), 'idempotency-key': id },
            ...{ 'x-gitlab-instance': 'https://git.example', 'x-gitlab-webhook-uuid': randomUUID() },
            ...{ 'webhook-id': id, 'webhook-timestamp': stamp, 'webhook-signature': `v1,${mac}` }
        };
    }
    const sha1 = createHmac('sha1', secret).update(body).digest('hex');
    const github = {
        ...{ 'x-github-event': event.replace(/_sync$/, ''), 'x-github-delivery': id },
        ...{ 'x-hub-signature': `sha1=${sha1}`, 'x-hub-signature-256': `sha256=${hex}` }
    };
    return sender === 'github'
        ? github
        : {
              // Gitea sends the headers of GitHub and Gogs beside its own.
              ...github,
              ...{ 'x-gitea-event': event.replace(/_sync$/, ''), 'x-gitea-event-type': event },
              ...{ 'x-gitea-delivery': id, 'x-gitea-signature': hex },
              ...{
                  'x-gogs-event': event.replace(/_sync$/, ''),
                  'x-gogs-delivery': id,
                  'x-gogs-signature': hex
              },
              'x-github-event-type': event
          };
}

/** The body of a push, and the name of its event. */
export function pushOf(sender: Sender, said: PushSaid): readonly [event: string, body: string] {
    const { ref = 'refs/heads/main', commit, message = 'Change', files = [] } = said;
    const changed = files === null ? {} : { added: [], modified: files, removed: [] };
    const one = {
        ...{ id: commit, message, timestamp: '2026-11-24T12:00:00+02:00', ...changed },
        ...{
            url: `https://git.example/acme/shop/commit/${commit}`,
            author: { name: 'Ada', email: user.email }
        }
    };
    const common = { ref, before: nothing, after: commit };
    if (sender === 'gitlab') {
        const isTag = ref.startsWith('refs/tags/');
        const kind = isTag ? 'tag_push' : 'push';
        const body = {
            ...{ object_kind: kind, event_name: kind, ...common, ref_protected: true, checkout_sha: commit },
            ...{ message: null, user_id: 4, user_name: 'Ada', user_username: 'ada', project_id: 15 },
            ...{
                project: gitlabProject,
                repository: { name: 'shop', visibility_level: 0 },
                push_options: {}
            },
            ...{ commits: isTag ? [] : [one], total_commits_count: isTag ? 0 : 1 }
        };
        return [isTag ? 'Tag Push Hook' : 'Push Hook', JSON.stringify(body)];
    }
    const more =
        sender === 'github'
            ? {
                  created: false,
                  deleted: false,
                  forced: false,
                  base_ref: null,
                  compare: 'https://git.example/c'
              }
            : { compare_url: 'https://git.example/c', total_commits: 1 };
    const body = { ...common, ...more, commits: [one], head_commit: one, repository: repository(7) };
    return ['push', JSON.stringify({ ...body, pusher: user, sender: user })];
}

/** The body of an event of a pull request, and the name of that event. */
export function pullOf(sender: Sender, said: PullSaid): readonly [event: string, body: string] {
    const { number, commit, action, fork = false, target = 'main' } = said;
    if (sender === 'gitlab') {
        const actions = { opened: 'open', pushed: 'update', edited: 'update', closed: 'close' } as const;
        const attributes = {
            ...{ id: 99, iid: number, title: 'Feature', state: action === 'closed' ? 'closed' : 'opened' },
            ...{ source_branch: 'feature', source_project_id: fork ? 16 : 15, target_branch: target },
            ...{ target_project_id: 15, action: actions[action], merge_status: 'unchecked', draft: false },
            last_commit: {
                ...{ id: commit, message: 'Feature', title: 'Feature' },
                author: { name: 'Ada', email: '[REDACTED]' }
            },
            // Only where the head changed.
            ...(action === 'pushed' ? { oldrev: nothing.replaceAll('0', 'a') } : {}),
            ...{ source: { ...gitlabProject, id: fork ? 16 : 15 }, target: gitlabProject }
        };
        const body = { object_kind: 'merge_request', event_type: 'merge_request', user: gitlabUser };
        const changes = { updated_at: { previous: null, current: '2026-11-24 12:00:00 UTC' } };
        const whole = { ...body, project: gitlabProject, object_attributes: attributes, labels: [], changes };
        return ['Merge Request Hook', JSON.stringify(whole)];
    }
    const pushed = sender === 'github' ? 'synchronize' : 'synchronized';
    const body = {
        ...{ action: action === 'pushed' ? pushed : action, number, sender: user, repository: repository(7) },
        pull_request: {
            ...{
                id: 90 + number,
                number,
                state: action === 'closed' ? 'closed' : 'open',
                title: 'Feature',
                user
            },
            head: { label: 'feature', ref: 'feature', sha: commit, repo: repository(fork ? 8 : 7) },
            base: { label: target, ref: target, sha: nothing, repo: repository(7) },
            ...{ merged: false, draft: false, updated_at: '2026-11-24T12:00:00Z' }
        }
    };
    const event = sender === 'gitea' && action === 'pushed' ? 'pull_request_sync' : 'pull_request';
    return [event, JSON.stringify(body)];
}

/** Sends a delivery, and gives the answer of the panel. */
export async function deliver(
    url: string,
    body: string,
    headers: Headers
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are looked into by the tests, field by field
): Promise<{ readonly status: number; readonly code: number; readonly data: any }> {
    const answer = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body
    });
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the same
    return { status: answer.status, ...((await answer.json()) as { code: number; data: any }) };
}
