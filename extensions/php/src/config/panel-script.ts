/** A script beside the configuration, which the panel alone asks for: it tells of the OPcache of a site, and empties it. */

/** Its text. It answers JSON; the parameter `PORTICO_ACTION` says what to do. */
export const panelScript = `<?php
header('Content-Type: application/json');
$status = function_exists('opcache_get_status') ? @opcache_get_status(false) : false;
if (($_SERVER['PORTICO_ACTION'] ?? '') === 'reset') {
    echo json_encode(['reset' => $status !== false && opcache_reset()]);
    return;
}
echo json_encode([
    'enabled' => $status !== false && $status['opcache_enabled'],
    'usedBytes' => $status === false ? 0 : $status['memory_usage']['used_memory'],
    'hitRate' => $status === false ? 0 : $status['opcache_statistics']['opcache_hit_rate'],
    'scripts' => $status === false ? 0 : $status['opcache_statistics']['num_cached_scripts'],
]);
`;
