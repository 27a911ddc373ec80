/** Routes of what a build made: its archive, its provenance, its cache, and the presets that builds follow. */
import { joi } from '@portico/sdk';

import { frameworks } from '../build/frameworks.ts';
import type { ReleasePlan } from '../build/plan.ts';
import type { Envelope } from '../build/provenance.ts';
import { fail } from '../errors.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { deploymentParams, nothing, projectParams } from './params.ts';

const envelopeSchema = joi.object({
    payloadType: joi.string().required().label('Type'),
    payload: joi.string().required().label('Statement').description('Base64 of an in-toto statement'),
    signatures: joi
        .array()
        .items(
            joi.object({
                keyid: joi.string().required().label('Key'),
                sig: joi.string().required().label('Signature')
            })
        )
        .required()
        .label('Signatures')
});

/** Declares the routes of artifacts: provenance, archive and cache. */
export function registerArtifactRoutes(ctx: Ctx, services: Services): void {
    registerProvenance(ctx, services);
    registerArchive(ctx, services);
    registerCache(ctx, services);
}

function registerProvenance(ctx: Ctx, { store, provenance }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/deployments/{id}/provenance',
        id: 'provenance',
        access: 'read',
        summary: 'How the release was made, signed',
        description:
            'An envelope of DSSE around an in-toto Statement v1 with SLSA provenance v1, signed by Ed25519.',
        ui: { title: 'Provenance' },
        validate: { params: deploymentParams },
        returns: envelopeSchema,
        async handler({ params }) {
            const { provenance: signed } = await store.deployment(params.id);
            if (signed === null) {
                throw fail.NOT_KEPT();
            }
            const { payloadType, payload, signatures } = JSON.parse(signed) as Envelope;
            return { payloadType, payload, signatures: [...signatures] };
        }
    });
    ctx.route({
        method: 'GET',
        path: '/provenance-key',
        id: 'provenanceKey',
        access: 'read',
        summary: 'The key that provenances are checked with',
        ui: { title: 'Key of provenances', role: 'card', order: 6 },
        returns: joi.object({
            keyid: joi.string().required().label('Id').description('SHA-256 of the key'),
            publicKey: joi.string().required().label('Public key')
        }),
        handler: () => provenance.publicKey()
    });
    ctx.route({
        method: 'GET',
        path: '/frameworks',
        id: 'frameworks',
        access: 'read',
        summary: 'Frameworks that are recognised by their files, the first that matches holds',
        ui: { title: 'Frameworks', order: 5 },
        returns: joi.array().items(
            joi.object({
                id: joi.string().required().label('Id'),
                title: joi
                    .string()
                    .required()
                    .label('Framework')
                    .meta({ ui: { column: 1 } })
            })
        ),
        handler: () => frameworks.map(({ id, title }) => ({ id, title }))
    });
}

function registerArchive(ctx: Ctx, { store, folders }: Services): void {
    ctx.download({
        path: '/deployments/{id}/artifact',
        id: 'artifact',
        access: 'write',
        summary: 'The archive of a release',
        ui: { title: 'Archive' },
        validate: { params: deploymentParams },
        async handler({ params }) {
            const { kept, plan, projectId, artifactBytes, artifactSha256, number } = await store.deployment(
                params.id
            );
            if (!kept || plan === null || artifactSha256 === null) {
                throw fail.NOT_KEPT();
            }
            const { release } = JSON.parse(plan) as ReleasePlan;
            const file = await folders.files.open(`projects/${projectId}/artifacts/${release}.tar`);
            return {
                size: artifactBytes,
                type: 'application/x-tar',
                name: `release-${number}.tar`,
                version: artifactSha256,
                open: ({ start, end }) =>
                    file.createReadStream({
                        start,
                        ...(end === null ? {} : { end: end - 1 }),
                        autoClose: false
                    }),
                close: () => file.close()
            };
        }
    });
}

function registerCache(ctx: Ctx, { store, folders, queue }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/projects/{id}/cache',
        id: 'cache',
        access: 'read',
        summary: 'The cache of a project',
        ui: { title: 'Cache', role: 'card' },
        validate: { params: projectParams },
        returns: joi.object({ bytes: joi.number().integer().required().label('Size').unit('byte') }),
        async handler({ params }) {
            const { id } = await store.project(params.id);
            return { bytes: await folders.bytes(`projects/${id}/cache`) };
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/projects/{id}/cache',
        id: 'clearCache',
        access: 'write',
        summary: 'Empty the cache of a project',
        answers: 'done',
        ui: { title: 'Empty the cache', role: 'action' },
        audit: { action: 'clear', resource: 'cache' },
        timeoutSeconds: 300,
        validate: { params: projectParams },
        returns: nothing,
        async handler({ params, audit }) {
            const { id } = await store.project(params.id);
            audit({ resourceId: id });
            await queue.hold(id, () => folders.remove(`projects/${id}/cache`));
            return null;
        }
    });
}
