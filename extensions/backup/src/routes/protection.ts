/** Routes of what protects the backups themselves: the coverage report, and the recovery kit. */
import { joi } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const subject = {
    kind: joi
        .choice({
            panel: 'The panel',
            plugin: 'A plugin',
            item: 'An item of a plugin',
            folder: 'A folder of a host',
            plan: 'A plan',
            repository: 'A repository'
        })
        .required()
        .label('Kind'),
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } })
};

/** Declares the routes of coverage and of recovery kits. */
export function registerProtectionRoutes(ctx: Ctx, { coverage, kits }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/coverage',
        id: 'coverage',
        access: 'read',
        summary: 'What is in a backup, and what is in none',
        ui: { title: 'Coverage', order: 6 },
        returns: joi.object({
            worstAgeSeconds: joi
                .number()
                .integer()
                .allow(null)
                .required()
                .label('Oldest newest success')
                .unit('second'),
            covered: joi
                .array()
                .items(
                    joi.object({
                        ...subject,
                        planId: joi.number().integer().required().label('Plan'),
                        lastSuccessAt: joi.string().required().label('Last success')
                    })
                )
                .required()
                .label('Covered'),
            uncovered: joi
                .array()
                .items(
                    joi.object({
                        ...subject,
                        reason: joi
                            .choice({
                                'no-plan': 'No plan names it',
                                'never-run': 'Its plan never ran',
                                failed: 'Its last run failed',
                                stale: 'Its last success is too old',
                                'not-offered': 'It is not offered any more',
                                'same-machine': 'All copies lie on this machine',
                                'no-drill': 'No drill proved it lately'
                            })
                            .required()
                            .label('Why')
                    })
                )
                .required()
                .label('Not covered')
        }),
        async handler() {
            const { worstAgeSeconds, covered, uncovered } = await coverage.report();
            return { worstAgeSeconds, covered: [...covered], uncovered: [...uncovered] };
        }
    });
    ctx.route({
        method: 'POST',
        path: '/recovery-kit',
        id: 'recoveryKit',
        access: 'secrets',
        stepUp: true,
        secret: true,
        summary: 'Make a recovery kit',
        description:
            'All repositories with their secrets, sealed under a passphrase. With it the command `portico-backup` restores the panel on a bare machine. Keep kit and passphrase apart from each other and from this machine.',
        returns: joi.any(),
        ui: { title: 'Recovery kit', role: 'action' },
        audit: { action: 'make', resource: 'recovery-kit' },
        validate: {
            payload: joi.object({
                passphrase: joi.secret().min(12).max(1_000).required().label('Passphrase')
            })
        },
        handler: ({ payload }) => kits.make(payload.passphrase)
    });
}
