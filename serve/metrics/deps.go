package metrics

import _ "github.com/prometheus/client_golang/prometheus"

import _ "github.com/prometheus/client_golang/prometheus/promhttp"
