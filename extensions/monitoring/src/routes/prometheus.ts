/** The route for Prometheus, and for other programs that read its format. */
import { expose, expositionType } from '../prometheus/exposition.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

/** Declares the route `/prometheus`, which other programs scrape. */
export function registerPrometheusRoutes(ctx: Ctx, { monitor }: Services): void {
    ctx.http({
        methods: ['GET', 'HEAD'],
        path: '/prometheus',
        id: 'prometheus',
        access: 'read',
        summary: 'All metrics in the text format of Prometheus',
        maxBytes: 0,
        raw: 'Prometheus reads its own text format (0.0.4) and nothing else',
        description:
            'Counters as the kernel has them; Prometheus calculates the rates. Give it an API token with `read` as its bearer token.',
        handler(request) {
            const { reading, sample } = monitor.taken;
            const text = expose({
                reading,
                extras: sample,
                firing: monitor.journal.firing(),
                status: monitor.status(),
                settings: ctx.settings
            });
            return new Response(request.method === 'HEAD' ? null : text, {
                headers: { 'content-type': expositionType }
            });
        }
    });
}
