/** Routes that take the whole model out, and in again. */
import { joi } from '@portico/sdk';

import { documentSchema } from '../../draft/document.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';

const planView = joi.array().items(
    joi.object({
        action: joi
            .choice({ add: 'Add', change: 'Change', remove: 'Remove', keep: 'Keep' })
            .required()
            .label('Action')
            .meta({ ui: { column: 1 } }),
        kind: joi
            .string()
            .required()
            .label('Kind')
            .meta({ ui: { column: 2 } }),
        name: joi
            .string()
            .allow('')
            .required()
            .label('Name')
            .meta({ ui: { column: 3 } })
    })
);

/** Registers `/export`, `/import` and `/adopt`. */
export function registerDocumentRoutes(ctx: Ctx, { documents, foreign }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/export',
        id: 'export',
        access: 'read',
        summary: 'The draft as a document',
        ui: { title: 'Export', role: 'hidden' },
        returns: joi.object({ document: joi.any().required().label('Document') }),
        handler: async () => ({ document: await documents.read() })
    });
    ctx.route({
        method: 'POST',
        path: '/import',
        id: 'import',
        access: 'write',
        summary: 'Take a document into the draft',
        answers: 'done',
        maxBytes: 32 * 2 ** 20,
        ui: { title: 'Import', role: 'hidden' },
        returns: joi.object({ plan: planView.required().label('Plan') }),
        audit: { action: 'import', resource: 'firewall' },
        validate: {
            payload: joi.object({
                document: documentSchema.required().label('Document'),
                mode: joi
                    .choice({ merge: 'Add to the draft', replace: 'Replace the draft' })
                    .required()
                    .label('Mode'),
                dryRun: joi.boolean().default(false).label('Only show the plan')
            })
        },
        async handler({ payload, audit }) {
            const plan = await documents.write(payload.document, payload.mode, payload.dryRun);
            audit({ after: { mode: payload.mode, dryRun: payload.dryRun, steps: plan.length } });
            return { plan: [...plan] };
        }
    });
    ctx.route({
        method: 'POST',
        path: '/adopt',
        id: 'adopt',
        access: 'write',
        effect: 'read',
        summary: "Read another program's rules as ours",
        description:
            'The document is for `/import`; `unmatched` has no counterpart here. Nothing is changed.',
        answers: 'done',
        timeoutSeconds: 60,
        ui: { title: 'Adopt', role: 'hidden' },
        returns: joi.object({
            document: joi.any().required().label('Document'),
            unmatched: joi.array().items(joi.string()).required().label('Without counterpart')
        }),
        validate: {
            payload: joi.object({
                tool: joi
                    .choice({ ufw: 'ufw', firewalld: 'firewalld', iptables: 'iptables', nft: 'nft' })
                    .required()
                    .label('Program')
            })
        },
        async handler({ payload }) {
            const { unmatched, ...adopted } = await foreign.adopt(payload.tool);
            return {
                document: { format: 'portico-firewall', version: 1, ...adopted, services: [], sets: [] },
                unmatched: [...unmatched]
            };
        }
    });
}
