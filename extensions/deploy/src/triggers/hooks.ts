/** Hooks: addresses that git servers send pushes to. */
import { createHash, randomBytes } from 'node:crypto';

import { isWebhookProven, newWebhookSecret, type WebhookHeaders } from '@portico/sdk';

import type { Queue } from '../deployments/queue.ts';
import type { Project, Store } from '../deployments/store.ts';
import { DeliveryEntity, type DeploymentRow, type PreviewRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Previews } from '../previews/previews.ts';
import type { Ctx } from '../settings.ts';
import { deliveryId, pushOf } from './delivery.ts';
import { type Ignored, ignoredBecause } from './filter.ts';
import { pullRequestOf } from './pull-request.ts';

/** A delivery as it came. */
export interface Delivery {
    readonly key: string;
    readonly headers: WebhookHeaders;
    readonly type: string;
    readonly body: Buffer;
}

/** What became of a delivery. */
export type Taken =
    { readonly deployment: DeploymentRow } | { readonly preview: PreviewRow } | { readonly ignored: Ignored };

const keyBytes = 24;
/** So long a delivery that comes again does nothing. */
const rememberedMs = 24 * 60 * 60_000;

/** Makes hooks, and takes what they are sent. */
export class Hooks {
    readonly #ctx: Ctx;
    readonly #store: Store;
    readonly #queue: Queue;
    readonly #previews: Previews;
    /** Compared with where there is no hook of that key, so that both take the same time. */
    readonly #decoy = newWebhookSecret();

    constructor(ctx: Ctx, store: Store, queue: Queue, previews: Previews) {
        this.#previews = previews;
        this.#ctx = ctx;
        this.#store = store;
        this.#queue = queue;
    }

    /** Makes the hook of a project, which replaces the one before. */
    async make(projectId: number): Promise<{ readonly url: string; readonly secret: string }> {
        const [hookKey, secret] = [randomBytes(keyBytes).toString('base64url'), newWebhookSecret()];
        await this.#store.changeProject(projectId, {
            hookKey,
            hookSecret: await this.#ctx.secrets.seal(secret)
        });
        return { url: `/api/plugins/${this.#ctx.name}/hooks/${hookKey}`, secret };
    }

    /** Removes the hook of a project. */
    async remove(projectId: number): Promise<void> {
        await this.#store.changeProject(projectId, { hookKey: null, hookSecret: null });
    }

    /** Takes a delivery. @throws SIGNATURE_INVALID 40150, alike for an unknown key and for a wrong signature; QUEUE_FULL 42950 */
    async take({ key, headers, type, body }: Delivery): Promise<Taken> {
        const project = await this.#store.projectOfHook(key);
        const sealed = project?.hookSecret ?? null;
        const secret = sealed === null ? this.#decoy : await this.#ctx.secrets.open(sealed);
        const isGood = isWebhookProven(headers, body, secret, {
            tokens: project?.config.triggers.plainToken === true ? ['x-gitlab-token'] : []
        });
        if (project === null || sealed === null || !isGood) {
            throw fail.SIGNATURE_INVALID();
        }
        const pull = pullRequestOf(headers, type, body);
        if (pull !== null) {
            if (!(await this.#isNew(project, headers, body))) {
                return { ignored: 'duplicate' };
            }
            const preview = await this.#previews.take(project, pull);
            return typeof preview === 'string' ? { ignored: preview } : { preview };
        }
        const push = pushOf(headers, type, body);
        if (push === null) {
            return { ignored: 'event' };
        }
        const ignored = ignoredBecause(project.config, push);
        if (ignored !== null) {
            return { ignored };
        }
        if (!(await this.#isNew(project, headers, body))) {
            return { ignored: 'duplicate' };
        }
        const deployment = await this.#queue.add({
            projectId: project.id,
            trigger: 'push',
            ref: push.kind === 'tag' ? `refs/tags/${push.name}` : `refs/heads/${push.name}`,
            commit: push.kind === 'tag' ? null : push.commit,
            from: null,
            clearCache: false
        });
        return { deployment };
    }

    /** Notes a delivery. Ids are not signed by every server, so the body counts, too: no stranger can send a push again under another id. */
    async #isNew({ id: projectId }: Project, headers: WebhookHeaders, body: Buffer): Promise<boolean> {
        const given = deliveryId(headers);
        const ids = [
            `${projectId}:body:${createHash('sha256').update(body).digest('hex')}`,
            ...(given === null ? [] : [`${projectId}:id:${given}`])
        ];
        const now = Date.now();
        return this.#ctx.db.write(async (em) => {
            await em.nativeDelete(DeliveryEntity, { at: { $lt: now - rememberedMs } });
            if ((await em.count(DeliveryEntity, { id: { $in: ids } })) > 0) {
                return false;
            }
            ids.forEach((id) => em.create(DeliveryEntity, { id, at: now }));
            return true;
        });
    }
}
