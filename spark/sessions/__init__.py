"""Spark sessions: which Java runs them, their JVM, their cluster, and our packages on its executors.

An arrow means: imports.

warm_server ──▶ session ──▶ class_archive ──▶ java
                   ├──────▶ jvm, nameless_user
                   ├──────▶ settings, cluster ──▶ master
                   └──────▶ submit, cluster ──▶ package ──▶ folders
connect ──▶ cluster, jvm
"""
