/** For Prometheus and whoever reads its format. */
import { expose, expositionType } from '../prometheus/exposition.ts';
import type { Parts } from '../parts.ts';

export function prometheusRoutes({ ctx, monitor }: Parts): void {
    ctx.http({
        methods: ['GET', 'HEAD'],
        path: '/prometheus',
        id: 'prometheus',
        access: 'read',
        summary: 'All metrics in the text format of Prometheus',
        maxBytes: 0,
        raw: 'Prometheus reads its own text format (0.0.4) and nothing else',
        description:
            'Counters as the kernel has them; Prometheus makes the rates. Give it an API token with `read` as its bearer token.',
        handler(request) {
            const { reading } = monitor.taken;
            const text = expose({
                reading,
                firing: monitor.journal.firing(),
                vitals: monitor.vitals(),
                settings: ctx.settings
            });
            return new Response(request.method === 'HEAD' ? null : text, {
                headers: { 'content-type': expositionType }
            });
        }
    });
}
