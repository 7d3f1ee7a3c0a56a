"""Spark sessions: which Java runs them, their JVM, their cluster, and our packages on its executors.

session ──▶ jvm, cluster, class_archive ──▶ java, package, settings, folders ──▶ master
connect ──▶ jvm, cluster, package
"""
